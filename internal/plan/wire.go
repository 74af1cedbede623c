package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// String renders the command as an operator would type it, for tables and errors.
func (c Command) String() string {
	if c.Shell != "" {
		return c.Shell
	}
	words := make([]string, len(c.Argv))
	for i, w := range c.Argv {
		words[i] = quoteWord(w)
	}
	return strings.Join(words, " ")
}

func quoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\n\"'\\$`&|;<>()*?[]{}#~") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// MarshalJSON writes a list for an argv and a string for a shell line.
func (c Command) MarshalJSON() ([]byte, error) {
	if c.Shell != "" {
		return json.Marshal(c.Shell)
	}
	return json.Marshal(c.Argv)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Command) UnmarshalJSON(data []byte) error {
	*c = Command{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.Shell)
	}
	return json.Unmarshal(data, &c.Argv)
}

// Std returns the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalText writes Go duration text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go duration text that is not negative.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("parse duration %q: want text like 5s or 2m", text)
	}
	if v < 0 {
		return fmt.Errorf("parse duration %q: must not be negative", text)
	}
	*d = Duration(v)
	return nil
}
