#!/bin/sh
# musl's loader searches the folders that /etc/ld-musl-MACHINE.path lists. Without that file, it searches the folders in `own`.
# While the library is installed, its folder is the first in that file.
ours=/usr/lib/tautline
own='/lib
/usr/local/lib
/usr/lib'
for loader in /lib/ld-musl-*.so.1; do
    [ -e "$loader" ] || continue
    name=${loader##*/}
    file=/etc/${name%.so.1}.path
    rest=$own
    [ ! -s "$file" ] || rest=$(tr ':' '\n' <"$file" | grep -vxF "$ours")
    if [ -e "$ours/libzmq.so.5" ]; then
        printf '%s\n' "$ours" "$rest" >"$file.new" && mv "$file.new" "$file"
    elif [ "$rest" = "$own" ]; then
        rm -f "$file"
    elif [ -e "$file" ]; then
        printf '%s\n' "$rest" >"$file.new" && mv "$file.new" "$file"
    fi
done
