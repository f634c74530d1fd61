"""Laws of answers, tried on random requests over the built-in matrix: `python -m tests.laws --count 5000 --seed 7`."""
