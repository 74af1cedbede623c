package quota

import (
	"strconv"
	"time"
)

// This file is the grammar of dates, clock times and epochs:
//
//	moment   = epoch | duration | date [ clock ] [ zone ] | clock [ zone ] [ date ]
//	date     = day word | [ weekday ] ( iso | month day [ year ] | day month [ year ] | numeric ) | weekday
//	clock    = hour [ ":" minute [ ":" second ] ] [ am | pm ] | noon | midnight

type (
	clock struct {
		hour, minute, second int
		frac                 time.Duration
		unit                 Precision
		given                bool
	}
	date struct {
		year, day int // year 0: not stated
		month     time.Month
		weekday   time.Weekday
		ahead     dayAhead
	}
	// dayAhead is the distance of "today" (0) and "tomorrow" (1).
	dayAhead int
	// readState says what an attempt to read a time found.
	readState uint8
)

const noDay dayAhead = -1

const (
	nothing    readState = iota // no time starts here
	unreadable                  // a time starts here, but it names no instant
	read
)

// parser reads times from the tokens of one text.
type parser struct {
	calendar
	src  string // the text that the tokens point into
	toks []token
}

// tok gives token i, or a token that is nothing.
func (p *parser) tok(i int) token {
	if i < 0 || i >= len(p.toks) {
		return token{kind: punct, space: true}
	}
	return p.toks[i]
}

// number reads the digits of token i; at most width digits.
func (p *parser) number(i, width int) (int, bool) {
	t := p.tok(i)
	if t.kind != num || len(t.text) > width {
		return 0, false
	}
	n, err := strconv.Atoi(t.text)
	return n, err == nil
}

// moment reads the time that starts at token i; next is the token after it.
func (p *parser) moment(i int) (s stamp, next int, state readState) {
	if t := p.tok(i); t.kind == punct || t.kind == word && !timeWords[t.text] {
		return s, i, nothing
	}
	if s, next, ok := p.epoch(i); ok {
		return s, next, read
	}
	if wait, unit, next, ok := p.duration(i); ok {
		at, ok := p.later(wait)
		return stamp{at, unit}, next, readIf(ok)
	}
	d, next, state := p.date(i)
	if state == unreadable {
		return s, next, state
	}
	if state == read {
		return p.dateThenClock(d, next)
	}
	k, next, state := p.clock(i)
	if state != read {
		return s, next, state
	}
	return p.clockThenDate(k, next)
}

// timeWords are the words with which a time may start.
var timeWords = func() map[string]bool {
	words := set("midnight", "mitternacht", "minuit", "medianoche", "noon", "midday", "mittag", "mediodia",
		"today", "tonight", "hoy", "hoje", "heute", "tomorrow", "manana", "amanha", "morgen", "demain",
		"今", "明", "上", "下", "午", "晚", "오")
	for w := range months {
		words[w] = true
	}
	for w := range weekdays {
		words[w] = true
	}
	for w := range smallNumbers {
		words[w] = true
	}
	return words
}()

func readIf(ok bool) readState {
	if ok {
		return read
	}
	return unreadable
}

// epoch reads ten or more digits, perhaps with a fraction.
func (p *parser) epoch(i int) (stamp, int, bool) {
	t := p.tok(i)
	if t.kind != num || len(t.text) < 10 {
		return stamp{}, i, false
	}
	n, next := p.float(i)
	at, ok := epoch(n)
	return stamp{at, Exact}, next, ok
}

// float reads a number with an optional fraction.
func (p *parser) float(i int) (float64, int) {
	s := p.tok(i).text
	if dot, frac := p.tok(i+1), p.tok(i+2); dot.is(".") && !dot.space && frac.kind == num && !frac.space {
		s += "." + frac.text
		i += 2
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, i + 1
	}
	return n, i + 1
}

func (p *parser) dateThenClock(d date, next int) (stamp, int, readState) {
	after := next
	for p.dateGlue(after) && after < next+4 {
		after++
	}
	k, end, state := p.clock(after)
	if state == nothing && d.month != 0 {
		k, end, state = p.bareHour(after)
	}
	switch state {
	case unreadable:
		return stamp{}, end, unreadable
	case nothing:
		k, end = clock{unit: Day}, next
	case read:
	}
	z, end := p.zone(end)
	return p.resolve(d, k, z, end)
}

func (p *parser) clockThenDate(k clock, next int) (stamp, int, readState) {
	z, next := p.zone(next)
	after := next
	for p.dateGlue(after) && after < next+3 {
		after++
	}
	d, end, state := p.date(after)
	switch state {
	case unreadable:
		return stamp{}, end, unreadable
	case read:
		if !z.given {
			z, end = p.zone(end)
		}
		return p.resolve(d, k, z, end)
	case nothing:
	}
	if z.unknown {
		return stamp{}, next, unreadable
	}
	at := p.nextClock(k, z.or(p.local)).Add(k.frac)
	return stamp{at.UTC(), k.unit}, next, read
}

func (p *parser) resolve(d date, k clock, z zone, end int) (stamp, int, readState) {
	if z.unknown {
		return stamp{}, end, unreadable
	}
	at, ok := p.on(d, k, z.or(p.local))
	return stamp{at.Add(k.frac).UTC(), k.unit}, end, readIf(ok)
}

// dateGlue tells whether token i may stand between a date and its clock.
func (p *parser) dateGlue(i int) bool {
	switch p.tok(i).text {
	case ",", "at", "@", "·", "-", "t", "a", "as", "las", "um", "on", "the", ".", "by", "in", "alle", "de", "|":
		return i < len(p.toks)
	}
	return false
}

// bareHour reads the hour that follows a date: "Jan 2, 2026, 22".
func (p *parser) bareHour(i int) (clock, int, readState) {
	h, ok := p.number(i, 2)
	next := p.tok(i + 1)
	if !ok || h > 23 || next.kind == num || next.is(":") && !next.space {
		return clock{}, i, nothing
	}
	if next.kind == word && (units[next.text].length != 0 || months[next.text] != 0) {
		return clock{}, i, nothing
	}
	return clock{hour: h, unit: Hour, given: true}, i + 1, read
}

// clock reads a clock time.
func (p *parser) clock(i int) (clock, int, readState) {
	half, i := p.half(i)
	t := p.tok(i)
	if half == "" && t.kind == word {
		switch t.text {
		case "midnight", "mitternacht", "minuit", "medianoche":
			return clock{unit: Hour, given: true}, i + 1, read
		case "noon", "midday", "mittag", "mediodia":
			return clock{hour: 12, unit: Hour, given: true}, i + 1, read
		}
	}
	hour, ok := p.number(i, 2)
	if !ok {
		return clock{}, i, nothing
	}
	k := clock{hour: hour, unit: Hour, given: half != ""}
	next := p.minutes(&k, i+1)
	if half == "" {
		half, next = p.half(next)
	}
	if half == "" && next == i+1 {
		return k, i, nothing
	}
	k.given = true
	return k, next, readIf(k.turn(half))
}

// minutes reads what follows the hour: ":10", ":10:30.5", "h30", "時30分".
func (p *parser) minutes(k *clock, i int) int {
	sep := p.tok(i)
	switch {
	case sep.is(":") || sep.is("時") || sep.is("时") || sep.is("点") || sep.is("點") || sep.is("시"):
	case sep.is(".") && !sep.space && p.isHalf(i+2):
	case (sep.is("h") || sep.is("uhr")) && p.tok(i+1).kind == num && len(p.tok(i+1).text) == 2:
	case sep.is("uhr"):
		return i + 1
	default:
		return i
	}
	minute, ok := p.number(i+1, 2)
	if !ok || sep.is(":") && len(p.tok(i+1).text) != 2 {
		if sep.is(":") {
			return i // a colon of the sentence
		}
		return i + 1
	}
	k.minute, k.unit = minute, Minute
	i += 2
	if p.tok(i).is("分") || p.tok(i).is("분") {
		i++
	}
	sep = p.tok(i)
	second, ok := p.number(i+1, 2)
	clocklike := sep.is(":") && !sep.space && len(p.tok(i+1).text) == 2 || p.tok(i+2).is("秒")
	if !ok || !clocklike {
		return i
	}
	k.second, k.unit = second, Exact
	i += 2
	if dot := p.tok(i); (dot.is(".") || dot.is(",")) && !dot.space && p.tok(i+1).kind == num && !p.tok(i+1).space {
		frac, _ := strconv.ParseFloat("0."+p.tok(i+1).text, 64)
		k.frac = time.Duration(frac * 1e9)
		i += 2
	}
	return i
}

func (p *parser) isHalf(i int) bool { h, _ := p.half(i); return h != "" }

// half reads am or pm in its spellings.
func (p *parser) half(i int) (string, int) {
	t, two := p.tok(i), p.tok(i).text+p.tok(i+1).text
	switch {
	case t.kind != word:
		return "", i
	case t.is("am") || t.is("pm"):
		return t.text, i + 1
	case (t.is("a") || t.is("p")) && p.tok(i+1).is(".") && p.tok(i+2).is("m"):
		if p.tok(i + 3).is(".") {
			return t.text + "m", i + 4
		}
		return t.text + "m", i + 3
	case two == "上午" || two == "午前" || two == "오전":
		return "am", i + 2
	case two == "下午" || two == "午後" || two == "오후" || two == "晚上":
		return "pm", i + 2
	}
	return "", i
}

// turn applies am or pm; it is false for a time that no clock shows.
func (k *clock) turn(half string) bool {
	if half != "" {
		if k.hour > 12 {
			return false
		}
		k.hour %= 12
		if half == "pm" {
			k.hour += 12
		}
	}
	if k.hour == 24 && k.minute == 0 && k.second == 0 {
		return true // midnight at the end of the day
	}
	return k.hour < 24 && k.minute < 60 && k.second < 60
}
