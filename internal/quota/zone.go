package quota

import (
	"strconv"
	"strings"
	"time"
)

// zone is a zone as a text states it. The zero value states none.
type zone struct {
	loc     *time.Location // nil: none, or a name that says too little
	given   bool
	unknown bool // names a zone that does not exist
}

func (z zone) or(loc *time.Location) *time.Location {
	if z.loc != nil {
		return z.loc
	}
	return loc
}

const maxOffset = 18 * 60 * 60

// zone reads a zone behind a clock time at token i: "(Asia/Tokyo)", "UTC+2",
// "GMT-3", "Z", "+0800 CST". Three-letter names are passed over: they are
// ambiguous, so the local zone holds.
func (p *parser) zone(i int) (zone, int) {
	bracket := p.tok(i).is("(") || p.tok(i).is("[")
	start := i
	if bracket {
		i++
	}
	z, next := p.zoneName(i, bracket)
	if next == i {
		return zone{}, start
	}
	if z.loc != nil && p.tok(i).kind == punct && p.abbreviation(next) {
		next++ // 2006-01-02 15:04:05 -0700 MST: the number decides
	}
	if bracket && (p.tok(next).is(")") || p.tok(next).is("]")) {
		next++
	}
	return z, next
}

func (p *parser) zoneName(i int, bracket bool) (zone, int) {
	t := p.tok(i)
	if t.is("+") || t.is("-") {
		return p.offset(i, false)
	}
	if t.kind != word {
		return zone{}, i
	}
	if raw, next := p.area(i); next > i+1 {
		z := p.named(raw)
		for end := next; z.unknown && end < next+2 && p.tok(end).kind == word; end++ {
			raw += "_" + p.src[p.tok(end).from:p.tok(end).to] // America/New York
			if longer := p.named(raw); !longer.unknown {
				return longer, end + 1
			}
		}
		return z, next
	}
	switch t.text {
	case "utc", "gmt", "ut", "z":
		if z, next := p.offset(i+1, true); next > i+1 {
			return z, next
		}
		return zone{loc: time.UTC, given: true}, i + 1
	}
	if p.abbreviation(i) {
		return zone{given: true}, i + 1
	}
	if bracket && !t.is("in") {
		if loc := p.load(p.src[t.from:t.to]); loc != nil {
			return zone{loc: loc, given: true}, i + 1
		}
	}
	return zone{}, i
}

// abbreviation tells whether token i looks like PST, CEST or ET.
func (p *parser) abbreviation(i int) bool {
	t := p.tok(i)
	if t.kind != word || t.to-t.from < 2 || t.to-t.from > 5 {
		return false
	}
	raw := p.src[t.from:t.to]
	return raw == strings.ToUpper(raw) && raw != strings.ToLower(raw) && raw != "AM" && raw != "PM"
}

// area gives the text of a name such as America/New_York at token i.
func (p *parser) area(i int) (string, int) {
	if !p.tok(i+1).is("/") || p.tok(i+1).space || p.tok(i+2).kind != word {
		return "", i
	}
	next := i + 1
	for next < len(p.toks) && next < i+14 {
		t := p.toks[next]
		if t.space && !p.tok(next-1).is("/") {
			break
		}
		if t.kind == punct && !t.is("/") && !t.is("_") && !t.is("-") && !t.is("+") {
			break
		}
		next++
	}
	raw := p.src[p.toks[i].from:p.toks[next-1].to]
	return strings.Join(strings.Fields(raw), ""), next
}

// offset reads "+2", "-03:30", "+0800"; loose allows the short forms, which
// need a name before them.
func (p *parser) offset(i int, loose bool) (zone, int) {
	sign, digits := p.tok(i), p.tok(i+1)
	if !sign.is("+") && !sign.is("-") || digits.kind != num || digits.space {
		return zone{}, i
	}
	colon := p.tok(i+2).is(":") && len(p.tok(i+3).text) == 2 && p.tok(i+3).kind == num
	next, hours, minutes := i+2, digits.text, "0"
	switch {
	case len(digits.text) == 4:
		hours, minutes = digits.text[:2], digits.text[2:]
	case len(digits.text) > 2 || !colon && !loose:
		return zone{}, i
	case colon:
		minutes, next = p.tok(i+3).text, i+4
	}
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	seconds := (h*60 + m) * 60
	if m > 59 || seconds > maxOffset {
		return zone{given: true, unknown: true}, next
	}
	if sign.is("-") {
		seconds = -seconds
	}
	return zone{loc: time.FixedZone("", seconds), given: true}, next
}

// named finds a zone of the database, by its present or an older name.
func (p *parser) named(name string) zone {
	if loc, ok := etc(name); ok {
		return zone{loc: loc, given: true, unknown: loc == nil}
	}
	loc := p.load(name)
	return zone{loc: loc, given: true, unknown: loc == nil}
}

// load looks a name up as it is, under its present name, and in the usual
// spelling of the database.
func (p *parser) load(name string) *time.Location {
	if p.lookup == nil || len(name) > 64 {
		return nil
	}
	usual := usualSpelling(name)
	for _, n := range []string{name, zoneAliases[strings.ToLower(name)], usual} {
		if n == "" || strings.EqualFold(n, "local") {
			continue
		}
		if loc, err := p.lookup(n); err == nil && loc != nil {
			return loc
		}
	}
	return nil
}

// usualSpelling writes europe/isle_of_man as Europe/Isle_of_Man.
func usualSpelling(name string) string {
	b := []byte(strings.ToLower(name))
	for i := range b {
		if b[i] >= 'a' && b[i] <= 'z' && (i == 0 || b[i-1] == '/' || b[i-1] == '_' || b[i-1] == '-') {
			b[i] -= 'a' - 'A'
		}
	}
	return strings.NewReplacer("_Of_", "_of_", "-Of-", "-of-", "_Es_", "_es_", "-Au-", "-au-", "-In-", "-in-").Replace(string(b))
}

// etc reads Etc/GMT+5 and its like, whose sign is reversed: it lies west of
// Greenwich. ok is false for another name.
func etc(name string) (loc *time.Location, ok bool) {
	rest, found := strings.CutPrefix(strings.ToLower(name), "etc/")
	if !found {
		return nil, false
	}
	switch rest {
	case "utc", "gmt", "uct", "zulu", "universal", "greenwich", "gmt0":
		return time.UTC, true
	}
	rest, found = strings.CutPrefix(rest, "gmt")
	if !found {
		return nil, true
	}
	hours, err := strconv.Atoi(rest)
	if err != nil || hours < -14 || hours > 12 {
		return nil, true
	}
	return time.FixedZone(name, -hours*60*60), true
}
