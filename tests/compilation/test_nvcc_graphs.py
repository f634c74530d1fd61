"""The graphs of a few real logs, checked by hand against the files that the commands name."""

from __future__ import annotations

import pytest

from tests.compilation import corpus
from toolmatrix.compilation import Plan, parse

# One stage a line: what it does, its arch, the numbers of the stages that it waits for.
GRAPHS = {
    "nvcc-4.2__seed": """
 0 preprocess   compute_30
 1 cudafe       compute_30   0
 2 preprocess   compute_30   1
 3 cudafe       compute_30   2
 4 preprocess   compute_30   3
 5 hash         -            4
 6 preprocess   -
 7 cudafe       -            6
 8 cicc         compute_30   4
 9 ptxas        sm_30        8
10 fatbinary    -            8 9
11 preprocess   -            1 7 10
12 host-compile -            11
13 link         -            12
""",
    "nvcc-7.5.17__c-one-arch": """
 0 preprocess   compute_52
 1 cudafe       compute_52   0
 2 preprocess   compute_52   1
 3 cudafe       compute_52   1 2
 4 preprocess   compute_52   3
 5 hash         -            4
 6 preprocess   -
 7 cudafe       -            1 6
 8 cicc         compute_52   4
 9 ptxas        sm_52        8
10 fatbinary    -            8 9
11 preprocess   -            1 7 10
12 host-compile -            11
""",
    "nvcc-9.1.85__c-many-gencode-ptx": """
 0 preprocess   compute_70
 1 cicc         compute_70   0
 2 preprocess   compute_30
 3 cicc         compute_30   1 2
 4 ptxas        sm_30        3
 5 preprocess   compute_35
 6 cicc         compute_35   1 5
 7 ptxas        sm_35        6
 8 preprocess   compute_50
 9 cicc         compute_50   1 8
10 ptxas        sm_50        9
11 preprocess   compute_60
12 cicc         compute_60   1 11
13 ptxas        sm_60        12
14 ptxas        sm_70        1
15 fatbinary    -            1 4 7 10 13 14
16 preprocess   -
17 cudafe       -            1 16
18 host-compile -            1 15 17
""",
    "nvcc-11.2.152__lto-link": """
 0 preprocess   compute_80
 1 cicc         compute_80   0
 2 fatbinary    -            1
 3 preprocess   -
 4 cudafe       -            1 3
 5 host-compile -            1 2 4
 6 preprocess   compute_80
 7 cicc         compute_80   6
 8 fatbinary    -            7
 9 preprocess   -
10 cudafe       -            7 9
11 host-compile -            7 8 10
12 nvlink       sm_80        5 11
13 fatbinary    -            12
14 host-compile -            12 13
15 link         -            5 11 14
""",
    "nvcc-11.8.89__cuda-cpp-ii": """
 0 preprocess   compute_89
 1 cicc         compute_89   0
 2 ptxas        sm_89        1
 3 fatbinary    -            1 2
 4 preprocess   -
 5 cudafe       -            1 4
 6 preprocess   -            1 3 5
""",
    "nvcc-12.4.131__run-args": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_90
 3 cicc         compute_90   1 2
 4 ptxas        sm_90        3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
 7 preprocess   -
 8 cudafe       -            7
 9 preprocess   compute_90
10 cicc         compute_90   8 9
11 ptxas        sm_90        10
12 fatbinary    -            10 11
13 host-compile -            8 10 12
14 nvlink       sm_90        6 13
15 fatbinary    -            14
16 host-compile -            14 15
17 link         -            6 13 16
18 other        -            17
""",
    "nvcc-13.0.88__threads4-many": """
 0 preprocess   -
 1 preprocess   compute_75
 2 preprocess   compute_80
 3 preprocess   compute_86
 4 preprocess   compute_90
 5 preprocess   compute_100
 6 preprocess   compute_120
 7 cudafe       -            0
 8 cicc         compute_75   1 7
 9 cicc         compute_90   4 7
10 cicc         compute_86   3 7
11 cicc         compute_80   2 7
12 cicc         compute_100  5 7
13 cicc         compute_120  6 7
14 ptxas        sm_75        8
15 ptxas        sm_80        11
16 ptxas        sm_86        10
17 ptxas        sm_120       13
18 ptxas        sm_90        9
19 ptxas        sm_100       12
20 fatbinary    -            13 14 15 16 17 18 19
21 host-compile -            7 13 20
""",
    "nvcc-13.0.88__dlink": """
 0 nvlink       sm_80
 1 fatbinary    -            0
 2 host-compile -            0 1
""",
    "nvcc-13.0.88__mixed-host-objects": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_80
 3 cicc         compute_80   1 2
 4 ptxas        sm_80        3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
 7 preprocess   -
 8 cudafe       -            7
 9 preprocess   compute_80
10 cicc         compute_80   8 9
11 ptxas        sm_80        10
12 fatbinary    -            10 11
13 host-compile -            8 10 12
14 host-compile -
15 host-compile -
16 nvlink       sm_80        6 13 14 15
17 fatbinary    -            16
18 host-compile -            16 17
19 link         -            6 13 14 15 18
""",
    "nvcc-13.0.88__family-and-specific-arch": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_100f
 3 cicc         compute_100f 1 2
 4 ptxas        sm_100f      3
 5 preprocess   compute_103a
 6 cicc         compute_103a 1 5
 7 ptxas        sm_103a      6
 8 preprocess   compute_120f
 9 cicc         compute_120f 1 8
10 ptxas        sm_120f      9
11 fatbinary    -            4 7 9 10
12 host-compile -            1 9 11
""",
    "nvcc-13.1.115__ptx": """
 0 preprocess   compute_90
 1 cicc         compute_90   0
 2 ptxas        compute_90   1
""",
    "nvcc-13.3.73__tile-enable": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_100
 3 cicc         compute_100  1 2
 4 tileiras     sm_100       3
 5 fatbinary    -            3 4
 6 ptxas        sm_100       3
 7 fatbinary    -            3 6
 8 host-compile -            1 3 5 7
""",
    "nvcc-13.3.73__tile-only": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_100
 3 cicc         compute_100  1 2
 4 tileiras     sm_100       3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
""",
    "nvcc-13.4.92__prune-concat-link": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_90
 3 cicc         compute_90   1 2
 4 ptxas        sm_90        3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
 7 preprocess   -
 8 cudafe       -            7
 9 preprocess   compute_90
10 cicc         compute_90   8 9
11 ptxas        sm_90        10
12 fatbinary    -            10 11
13 host-compile -            8 10 12
14 nvlink       sm_90        6 13
15 fatbinary    -            14
16 host-compile -            14 15
17 other        -            6
18 other        -            13
19 link         -            16 17 18
""",
}


def graph(plan: Plan) -> list[list[str]]:
    """A plan as the words of the lines above."""
    return [
        [
            str(stage.id),
            stage.kind,
            stage.arch or "-",
            *(str(first) for first, then in plan.edges if then == stage.id),
        ]
        for stage in plan.stages
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_is_the_one_checked_by_hand(name: str) -> None:
    assert graph(parse(corpus.case(name).text)) == [
        line.split() for line in GRAPHS[name].split("\n") if line
    ]
