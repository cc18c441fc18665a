#!/usr/bin/env bash
# Builds the programs of another language for CURVE: bench/languages/curve.sh BASE. Variables and results: build.sh.
#
# The code that the programs of BASE share reads these variables. Without CURVE_SECRET, a program does not encrypt.
#
#   CURVE_SECRET   the program's own secret key, in Z85
#   CURVE_PUBLIC   a client's own public key
#   CURVE_SERVER   the server's public key, for a client. Without it, the program is the server.
#
# REP and PULL are servers, REQ and PUSH are clients.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=$1
cache=$(dirname "$CACHE")/$base
mkdir -p "$cache" "$OUT/plain"
OUT=$OUT/plain CACHE=$cache "$here/$base/build.sh"
cp "$OUT/plain/versions.txt" "$OUT"

# The pairs of keys from the documentation of libzmq.
server_public='rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7'
server_secret='JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6'
client_public='Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID'
client_secret='D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs'
for program in local_lat local_thr; do
    printf '#!/bin/sh\nexec env CURVE_SECRET='\''%s'\'' "%s" "$@"\n' "$server_secret" "$OUT/plain/$program" >"$OUT/$program"
done
for program in remote_lat remote_thr; do
    printf '#!/bin/sh\nexec env CURVE_SECRET='\''%s'\'' CURVE_PUBLIC='\''%s'\'' CURVE_SERVER='\''%s'\'' "%s" "$@"\n' \
        "$client_secret" "$client_public" "$server_public" "$OUT/plain/$program" >"$OUT/$program"
done
chmod +x "$OUT"/{local,remote}_{lat,thr}
