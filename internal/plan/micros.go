package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParseMicros reads a decimal number of dollars as millionths, exactly. Negative
// numbers, exponents, more than six decimals and more than a billion are errors.
func ParseMicros(text string) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("%s is negative", text)
	}
	if len(fraction) > 6 {
		if strings.Trim(fraction[6:], "0") != "" {
			return 0, fmt.Errorf("%s has more than six decimals", text)
		}
		fraction = fraction[:6]
	}
	digits := whole + fraction + strings.Repeat("0", 6-len(fraction))
	if whole+fraction == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%s is no decimal number", text)
	}
	micros, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || micros > 1_000_000_000_000_000 {
		return 0, errors.New(text + " is more than a billion")
	}
	return micros, nil
}

// FormatUSD renders millionths of a dollar with two decimals, or as many as it takes.
func FormatUSD(micros int64) string {
	text := fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000)
	for strings.HasSuffix(text, "0") && !strings.HasSuffix(text[:len(text)-1], ".") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = text[:len(text)-1]
	}
	return text
}
