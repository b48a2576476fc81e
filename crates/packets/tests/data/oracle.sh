#!/bin/bash
# Writes tshark's statistics of each stream and direction of a capture to tshark/NAME.tsv.
for f in "$@"; do
  out=$(basename "$f")
  out="$(dirname "$f")/tshark/${out%.pcap*}.tsv"
  { printf 'stream\tsource\tpackets\tbytes\tretransmissions\tout_of_order\tbytes_in_flight_max\tzero_windows\tduplicate_acks\n'
  tshark -n -r "$f" -Y tcp -T fields -E occurrence=f -e tcp.stream -e ip.src -e ipv6.src -e tcp.srcport -e tcp.len -e tcp.analysis.retransmission -e tcp.analysis.out_of_order -e tcp.analysis.bytes_in_flight -e tcp.analysis.zero_window -e tcp.analysis.duplicate_ack 2>/dev/null |
  awk -F'\t' '{ src = $2 != "" ? $2 ":" $4 : "[" $3 "]:" $4; k = $1 "\t" src; if (!(k in n)) order[++c] = k; n[k]++; b[k] += $5; r[k] += $6 != ""; o[k] += $7 != ""; if ($8 + 0 > f[k]) f[k] = $8 + 0; z[k] += $9 != ""; d[k] += $10 != "" }
   END { for (i = 1; i <= c; i++) { k = order[i]; print k "\t" n[k] "\t" b[k] "\t" r[k] + 0 "\t" o[k] + 0 "\t" f[k] + 0 "\t" z[k] + 0 "\t" d[k] + 0 } }'
  } > "$out"
done
