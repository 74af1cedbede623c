package quota

import (
	"strings"
	"time"
)

// date reads a date that starts at token i.
func (p *parser) date(i int) (date, int, readState) {
	if d, next, ok := p.dayWord(i); ok {
		return d, next, read
	}
	start := i
	weekday, named := weekdays[p.tok(i).text]
	if named && p.tok(i).kind == word {
		i++
		for p.tok(i).is(",") || p.tok(i).is(".") {
			i++
		}
	}
	for _, form := range []func(int) (date, int, readState){p.iso, p.monthDay, p.dayMonth, p.numericDate} {
		if d, next, state := form(i); state != nothing {
			return d, next, state
		}
	}
	if named && p.tok(start).kind == word {
		return date{weekday: weekday, ahead: noDay}, start + 1, read
	}
	return date{}, start, nothing
}

func (p *parser) dayWord(i int) (date, int, bool) {
	switch p.tok(i).text {
	case "today", "tonight", "hoy", "hoje", "heute":
		return date{ahead: 0}, i + 1, true
	case "tomorrow", "manana", "amanha", "morgen", "demain":
		return date{ahead: 1}, i + 1, true
	}
	two := p.tok(i).text + p.tok(i+1).text
	switch two {
	case "今天", "今日":
		return date{ahead: 0}, i + 2, true
	case "明天", "明日":
		return date{ahead: 1}, i + 2, true
	}
	return date{}, i, false
}

// made checks a date as far as that is possible without the year.
func made(year, month, day, next int) (date, int, readState) {
	check := year
	if year == 0 {
		check = 2000 // a leap year
	}
	d := date{year: year, month: time.Month(month), day: day, ahead: noDay}
	return d, next, readIf(valid(check, d.month, day))
}

// iso reads 2006-01-02, 2006/01/02, 2006.01.02 and 2006年1月2日.
func (p *parser) iso(i int) (date, int, readState) {
	year, ok := p.number(i, 4)
	if !ok || len(p.tok(i).text) != 4 {
		return date{}, i, nothing
	}
	sep := p.tok(i + 1).text
	if sep != "-" && sep != "/" && sep != "." && sep != "年" && sep != "년" {
		return date{}, i, nothing
	}
	month, ok := p.number(i+2, 2)
	if !ok {
		return date{}, i, nothing
	}
	day, ok := p.number(i+4, 2)
	if !ok {
		return date{}, i + 3, unreadable
	}
	next := i + 5
	if t := p.tok(next).text; t == "日" || t == "일" || t == "号" {
		next++
	}
	return made(year, month, day, next)
}

// monthDay reads "Jan 2", "January 2nd, 2006" and "1月2日".
func (p *parser) monthDay(i int) (date, int, readState) {
	if m, ok := p.number(i, 2); ok && (p.tok(i+1).is("月") || p.tok(i+1).is("월")) {
		day, ok := p.number(i+2, 2)
		if !ok {
			return date{}, i, unreadable
		}
		next := i + 3
		if t := p.tok(next).text; t == "日" || t == "일" || t == "号" {
			next++
		}
		return made(0, m, day, next)
	}
	month := months[p.tok(i).text]
	if month == 0 || p.tok(i).kind != word {
		return date{}, i, nothing
	}
	i++
	for p.tok(i).is(".") || p.tok(i).is("the") {
		i++
	}
	if p.tok(i).kind != num {
		return date{}, i, nothing
	}
	day, ok := p.number(i, 2)
	if !ok || p.tok(i+1).is(":") && !p.tok(i+1).space {
		return date{}, i + 1, unreadable
	}
	next := p.ordinal(i + 1)
	year, next := p.year(next)
	return made(year, month, day, next)
}

// dayMonth reads "2 Jan 2006", "2nd of January" and "2 de jan. de 2006".
func (p *parser) dayMonth(i int) (date, int, readState) {
	day, ok := p.number(i, 2)
	if !ok {
		return date{}, i, nothing
	}
	next := p.ordinal(i + 1)
	for p.tok(next).is("de") || p.tok(next).is("of") || p.tok(next).is(".") || p.tok(next).is("-") {
		next++
	}
	month := months[p.tok(next).text]
	if month == 0 || p.tok(next).kind != word {
		return date{}, i, nothing
	}
	year, next := p.year(next + 1)
	return made(year, month, day, next)
}

// numericDate reads 1/2/2006 (month first unless that is impossible), 1/2, and
// 2.1.2006 (day first).
func (p *parser) numericDate(i int) (date, int, readState) {
	first, ok := p.number(i, 2)
	sep := p.tok(i + 1)
	second, ok2 := p.number(i+2, 2)
	if !ok || !ok2 || sep.space || !sep.is("/") && !sep.is(".") && !sep.is("-") {
		return date{}, i, nothing
	}
	third := p.tok(i + 3)
	year, hasYear := p.number(i+4, 4)
	hasYear = hasYear && third.text == sep.text && !third.space && len(p.tok(i+4).text) != 3
	if !hasYear && !sep.is("/") {
		return date{}, i, nothing
	}
	next := i + 3
	if hasYear {
		next = i + 5
		if year < 100 {
			year += 2000
		}
	} else {
		year = 0
	}
	month, day := first, second
	if sep.is(".") || first > 12 {
		month, day = second, first
	}
	return made(year, month, day, next)
}

// ordinal passes over "st", "nd", "rd", "th".
func (p *parser) ordinal(i int) int {
	switch t := p.tok(i); t.text {
	case "st", "nd", "rd", "th":
		if !t.space {
			return i + 1
		}
	}
	return i
}

// year reads a year of four digits after a comma, "de" or a blank.
func (p *parser) year(i int) (int, int) {
	at := i
	for p.tok(at).is(",") || p.tok(at).is("de") || p.tok(at).is(".") || p.tok(at).is("-") {
		at++
	}
	y, ok := p.number(at, 4)
	if !ok || len(p.tok(at).text) != 4 || p.tok(at+1).is(":") || at > i+2 {
		return 0, i
	}
	return y, at + 1
}

var months = names(map[string]int{
	"jan january januar janvier janv enero ene janeiro gennaio gen":    1,
	"feb february februar fevrier fevr febrero fev fevereiro febbraio": 2,
	"mar march marz mars marzo marco mrz":                              3,
	"apr april avril avr abril abr aprile":                             4,
	"may mai mayo maio maggio mag":                                     5,
	"jun june juni juin junio junho giugno giu":                        6,
	"jul july juli juillet juil julio julho luglio lug":                7,
	"aug august aout agosto ago":                                       8,
	"sep sept september septembre septiembre setembro set settembre":   9,
	"oct october oktober okt octobre octubre outubro out ottobre ott":  10,
	"nov november novembre noviembre novembro":                         11,
	"dec december dezember dez décembre diciembre dic dezembro":        12,
})

var weekdays = names(map[string]time.Weekday{
	"sun sunday sonntag dimanche domingo dom":                        time.Sunday,
	"mon monday montag lundi lunes lun segunda seg":                  time.Monday,
	"tue tues tuesday dienstag mardi martes ter terca":               time.Tuesday,
	"wed weds wednesday mittwoch mercredi miercoles mie quarta qua":  time.Wednesday,
	"thu thur thurs thursday donnerstag jeudi jueves jue quinta qui": time.Thursday,
	"fri friday freitag vendredi viernes vie sexta sex":              time.Friday,
	"sat saturday samstag samedi sabado sab":                         time.Saturday,
})

// names turns "a b c" → v into a → v, b → v, c → v.
func names[V any](lists map[string]V) map[string]V {
	out := make(map[string]V)
	for list, v := range lists {
		for name := range strings.FieldsSeq(list) {
			out[fold(name)] = v
		}
	}
	return out
}
