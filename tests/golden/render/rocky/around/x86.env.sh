# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
# lock    sha256:a8ceaa6d210f719e29e7309a23f3aa0eadedc9a1f0b65641f7dc1e89cdaa230e
# matrix  2026-11-20 sha256:de1ddcd14fae519f175eb3f7aa3a2c8cc96a00dab4a51c8af49615f872730cf3
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
#
# Source it in a shell: . ./x86.env.sh
export NVCC_APPEND_FLAGS='-gencode=arch=compute_86,code=sm_86 -gencode=arch=compute_86,code=compute_86'
