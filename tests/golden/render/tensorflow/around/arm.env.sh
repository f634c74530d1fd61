# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
# lock    sha256:ec4507d45bc2f8e28edbea9cf708a4127f96410dcc49c8bd3cb353bfe71375d0
# matrix  2026-11-20 sha256:5fab926a265f8ebc7320a2d6edef8bde9ea4fc851a7da214d4a12c108e116cc7
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
#
# Source it in a shell: . ./arm.env.sh
export CFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
export CXXFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
