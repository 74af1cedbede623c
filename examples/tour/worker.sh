#!/bin/sh
# The tour's worker: knows the repair of each fault by heart. A real agent
# would read $MENDFLOW_PROMPT instead; both deliver $MENDFLOW_RESULT.
set -eu
cd "$MENDFLOW_WORKTREE"

edit() { # edit FILE SED-SCRIPT
  sed "$2" "$1" > "$1.new"
  if cmp -s "$1" "$1.new"; then rm "$1.new"; else mv "$1.new" "$1"; changed=yes; fi
}
changed=no

case "$MENDFLOW_NODE" in
temp)
  edit temp/temp.go 's/+ 23/+ 32/'
  findings=F-1 ;;
list)
  edit list/list.go 's/i := 1;/i := 0;/'
  findings=F-2 ;;
text)
  edit text/text.go 's/\[\]byte(s)/[]rune(s)/'
  findings=F-3 ;;
store)
  edit store/store.go 's/return s\.readings }/return append([]float64(nil), s.readings...) }/
s/^func (s \*Store) Mean() float64 { return \(.*\) }$/func (s *Store) Mean() float64 {\
	if len(s.readings) == 0 {\
		return 0\
	}\
	return \1\
}/'
  findings="F-4 F-5" ;;
format)
  edit format/format.go 's/%.1f °C"/%.1f °F"/'
  findings=F-6 ;;
report)
  grep -q Mean report/report.go || edit report/report.go 's/^	return b.String()/	b.WriteString("mean " + format.Line(s.Mean()) + "\\n")\
	return b.String()/'
  edit README.md 's/, in Kelvin/ in both scales, and the mean/'
  findings=F-7 ;;
*)
  echo "no repair for $MENDFLOW_NODE" >&2
  exit 1 ;;
esac

status=resolved
[ "$changed" = yes ] || status=no_change
echo "$MENDFLOW_NODE: $status"

items=
for f in $findings; do
  items="$items${items:+,}{\"finding\":\"$f\",\"status\":\"$status\",\"evidence\":[{\"command\":[\"go\",\"test\",\"./$MENDFLOW_NODE\"],\"exit_code\":0}]}"
done
printf '{"items":[%s],"summary":"repaired by the scripted worker"}\n' "$items" > "$MENDFLOW_RESULT"
