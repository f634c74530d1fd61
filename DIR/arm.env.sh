# Written by toolmatrix 0.2.0; what is edited by hand is kept. To write it again:
#   toolmatrix render --lock toolmatrix.lock --output .
# lock    sha256:e82797cc8224a3409e4ebe95caa4b762b973ba013a76c0bba551ad6eeaf0f320
# matrix  2026-11-20 sha256:30225b4016c75b6bbdb597f7cc1a856d3226b15821adec7698f85481c17feba1
# file    sha256:3aab690b38290cc15794dcc4464c60f308f32cdaf9c5f572a2c7d0e9cd901343
#
# To be read by a shell: . ./arm.env.sh
export CFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
export CXXFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
