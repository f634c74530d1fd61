# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
# lock    sha256:4048aece749378013f65dc092b802b064818086d4b4f13581e539515f537bef7
# matrix  2026-11-20 sha256:de1ddcd14fae519f175eb3f7aa3a2c8cc96a00dab4a51c8af49615f872730cf3
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
#
# Source it in a shell: . ./amd.env.sh
export HIPCC_COMPILE_FLAGS_APPEND=--offload-arch=gfx90a
