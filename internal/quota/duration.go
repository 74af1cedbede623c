package quota

import "time"

// unit is a unit of time and the precision that it states.
type unit struct {
	length time.Duration
	unit   Precision
}

var units = names(map[string]unit{
	"ns nanosecond nanoseconds":                     {time.Nanosecond, Exact},
	"us µs μs microsecond microseconds":             {time.Microsecond, Exact},
	"ms msec msecs millis millisecond milliseconds": {time.Millisecond, Exact},
	"s sec secs second seconds seg segundo segundos sekunde sekunden seconde secondes secondi 秒 초": {time.Second, Exact},
	"m min mins minute minutes minuto minutos minuten minuti 分 분":                                  {time.Minute, Minute},
	"h hr hrs hour hours hora horas stunde stunden heure heures ora ore 时 時 시":                     {time.Hour, Hour},
	"d day days dia dias tag tage tagen jour jours giorno giorni 天 日 일":                            {24 * time.Hour, Day},
	"w wk wks week weeks semana semanas woche wochen semaine semaines settimana settimane 周 週":     {7 * 24 * time.Hour, Day},
})

// longUnits are units of two signs in scripts without blanks.
var longUnits = map[string]unit{
	"分钟": {time.Minute, Minute}, "分鐘": {time.Minute, Minute}, "分間": {time.Minute, Minute},
	"小时": {time.Hour, Hour}, "小時": {time.Hour, Hour}, "時間": {time.Hour, Hour}, "시간": {time.Hour, Hour},
	"秒钟": {time.Second, Exact}, "秒鐘": {time.Second, Exact}, "日間": {24 * time.Hour, Day},
	"毫秒": {time.Millisecond, Exact},
}

var smallNumbers = map[string]float64{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
	"seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12, "half": 0.5,
}

// duration reads "3 hours 2 minutes", "1h23m4.5s", "~100 min", "an hour". A
// bare number is none.
func (p *parser) duration(i int) (wait time.Duration, prec Precision, next int, ok bool) {
	total := 0.0
	next = i
	smallest := time.Duration(0)
	for {
		n, u, end, found := p.amount(next, smallest)
		if !found {
			break
		}
		total += n * float64(u.length)
		prec, smallest, next, ok = u.unit, u.length, end, true
		for p.tok(end).is(",") || p.joins(end) {
			end++
		}
		if _, _, _, more := p.amount(end, smallest); !more {
			break
		}
		next = end
	}
	if total > float64(10*farthest) {
		total = float64(10 * farthest) // refused by later
	}
	return time.Duration(total), prec, next, ok
}

func (p *parser) joins(i int) bool {
	switch p.tok(i).text {
	case "and", "y", "e", "und", "et":
		return true
	}
	return false
}

// amount reads one number with its unit, which must be smaller than the one
// before it (0: any).
func (p *parser) amount(i int, before time.Duration) (n float64, u unit, next int, ok bool) {
	t := p.tok(i)
	switch {
	case t.kind == num && len(t.text) <= 12:
		n, next = p.float(i)
		for p.tok(next).is(",") && !p.tok(next).space && p.tok(next+1).kind == num &&
			len(p.tok(next+1).text) == 3 && !p.tok(next+1).space {
			group, _ := p.float(next + 1)
			n, next = n*1000+group, next+2
		}
	case t.kind == word && smallNumbers[t.text] != 0:
		n, next = smallNumbers[t.text], i+1
		if t.is("half") && (p.tok(next).is("an") || p.tok(next).is("a")) {
			next++
		}
	default:
		return 0, u, i, false
	}
	if p.tok(next).is("-") && !p.tok(next).space {
		next++ // "5-hour"
	}
	u, next, ok = p.unit(next)
	if !ok || before != 0 && u.length >= before || n < 0 {
		return 0, u, i, false
	}
	return n, u, next, true
}

func (p *parser) unit(i int) (unit, int, bool) {
	t := p.tok(i)
	if t.kind != word {
		if t.is("个") {
			return p.unit(i + 1)
		}
		return unit{}, i, false
	}
	if u, ok := longUnits[t.text+p.tok(i+1).text]; ok {
		return u, i + 2, true
	}
	if t.is("个") || t.is("個") {
		return p.unit(i + 1)
	}
	u, ok := units[t.text]
	if !ok {
		return unit{}, i, false
	}
	// "3 m", but not "3 p.m." or "3 h30".
	if len(t.text) == 1 && t.is("h") && p.tok(i+1).kind == num && !p.tok(i+1).space && !p.unitAfter(i+1) {
		return unit{}, i, false
	}
	return u, i + 1, true
}

func (p *parser) unitAfter(i int) bool {
	_, next := p.float(i)
	_, ok := units[p.tok(next).text]
	return ok
}

// countdown reads "2:30" and "01:02:03" after "in": a wait, not a clock.
func (p *parser) countdown(i int) (wait time.Duration, prec Precision, next int, ok bool) {
	hours, ok1 := p.number(i, 3)
	minutes, ok2 := p.number(i+2, 2)
	if !ok1 || !ok2 || !p.tok(i+1).is(":") || minutes > 59 || p.isHalf(i+3) {
		return 0, None, i, false
	}
	wait = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	seconds, ok := p.number(i+4, 2)
	if !ok || !p.tok(i+3).is(":") || seconds > 59 {
		return wait, Minute, i + 3, true
	}
	return wait + time.Duration(seconds)*time.Second, Exact, i + 5, true
}
