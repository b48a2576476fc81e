#!/bin/sh
# Makes the program files of this directory anew, for x86-64: debugging information of versions 5 and 4, packed, and none.
set -eu
cd "$(dirname "$0")"
compile() {
    gcc -O1 -m64 -ffreestanding -nostdlib -fno-stack-protector -fasynchronous-unwind-tables -fdebug-prefix-map="$PWD"=. "$@" small.c
}
compile -gdwarf-5 -fPIE -pie -o dwarf5.elf
compile -gdwarf-4 -gz=zlib -static -o dwarf4-packed.elf
compile -gdwarf-5 -gsplit-dwarf -shared -fPIC -o split.elf
compile -shared -fPIC -s -Wl,--build-id -o stripped.elf
rm -f ./*.dwo
