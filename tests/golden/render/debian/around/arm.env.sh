# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
# lock    sha256:cc221b4b54dbee3d40d575e1d04ce9a3aa2b40a234433cbb711826d38d54353a
# matrix  2026-11-20 sha256:de1ddcd14fae519f175eb3f7aa3a2c8cc96a00dab4a51c8af49615f872730cf3
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
#
# Source it in a shell: . ./arm.env.sh
export CFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
export CXXFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
