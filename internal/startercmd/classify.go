package startercmd

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"mendflow/internal/quota"
)

// launchLine is one launch on standard input: the fields of limit-messages.jsonl.
type launchLine struct {
	ID         string          `json:"id"`
	Provider   string          `json:"provider"`
	Channel    string          `json:"channel"`
	ExitCode   *int            `json:"exit_code"`
	HTTPStatus *int            `json:"http_status"`
	Headers    json.RawMessage `json:"headers"`
	Text       string          `json:"text"`
	TextBase64 string          `json:"text_base64"`
	ObservedAt *time.Time      `json:"observed_at"`
	LocalZone  string          `json:"local_zone"`
	HasResult  bool            `json:"has_result"`
}

// verdictLine is what is printed for it.
type verdictLine struct {
	ID             string     `json:"id"`
	Outcome        string     `json:"outcome"`
	ResetAt        *time.Time `json:"reset_at"`
	ResetPrecision string     `json:"reset_precision"`
	Scope          string     `json:"scope"`
	Hard           bool       `json:"hard"`
	Rule           string     `json:"rule"`
}

func (a *app) classifyCommand() *cobra.Command {
	var o classifyOptions
	cmd := &cobra.Command{
		Use:   "classify",
		Short: "Say what a provider's text means: outcome, reset, rule",
		Long: "Say what the text of a finished launch means. Standard input is one launch per line as JSON\n" +
			"(id, provider, channel, exit_code, http_status, headers, text, text_base64, observed_at, local_zone, has_result);\n" +
			"with --provider it is the plain text of one launch. One JSON object per launch is printed.\n" +
			"Use it to report a misread limit, or to try a limit_patterns entry of a pools file.",
		Example: "  starter classify --provider claude < stderr.txt\n  starter classify --pools pools.yaml < launches.jsonl",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.classify(o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.provider, "provider", "", "standard input is plain text of this provider")
	flags.StringVar(&o.channel, "channel", "stderr", "with --provider: stdout, stderr, stream-json or http")
	flags.IntVar(&o.exit, "exit-code", 1, "with --provider: exit code of the program")
	flags.StringVar(&o.zone, "zone", "UTC", "zone in which the program printed times without one")
	flags.StringVar(&o.pools, "pools", "", "honour the limit_patterns of this pools file")
	return cmd
}

type classifyOptions struct {
	provider, channel, zone, pools string
	exit                           int
}

// launchBytes bounds one line of input.
const launchBytes = 64 << 20

func (a *app) classify(o classifyOptions) error {
	patterns, err := a.userPatterns(o.pools)
	if err != nil {
		return err
	}
	if o.provider != "" {
		text, err := io.ReadAll(a.In)
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		line := launchLine{ID: "stdin", Provider: o.provider, Channel: o.channel, ExitCode: &o.exit, Text: string(text), LocalZone: o.zone}
		if o.channel == string(quota.HTTP) {
			line.ExitCode = nil
		}
		return a.classifyOne(line, patterns)
	}
	scanner := bufio.NewScanner(a.In)
	scanner.Buffer(make([]byte, 0, 1<<20), launchBytes)
	for n := 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		line := launchLine{LocalZone: o.zone}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return usage("read launch on line %d: %w: it is one JSON object per line; for plain text give --provider", n, err)
		}
		if err := a.classifyOne(line, patterns); err != nil {
			return usage("read launch on line %d: %w", n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	return nil
}

// userPatterns compiles the limit_patterns of a pools file.
func (a *app) userPatterns(path string) (quota.Patterns, error) {
	if path == "" {
		return quota.Patterns{}, nil
	}
	file, err := a.readPools(path)
	if err != nil {
		return quota.Patterns{}, err
	}
	rules := make([]quota.Pattern, len(file.LimitPatterns))
	for i, p := range file.LimitPatterns {
		rules[i] = quota.Pattern{Match: p.Match, Outcome: quota.Outcome(p.Outcome), Reset: p.Reset}
	}
	patterns, err := quota.CompilePatterns(rules)
	if err != nil {
		return patterns, usage("read %s: %w", path, err)
	}
	return patterns, nil
}

func (a *app) classifyOne(line launchLine, patterns quota.Patterns) error {
	launch := quota.Launch{
		ID: line.ID, Provider: line.Provider, Channel: quota.Channel(line.Channel), ExitCode: line.ExitCode,
		HTTPStatus: line.HTTPStatus, Text: []byte(line.Text), ObservedAt: time.Now().UTC(), Zone: time.LoadLocation,
		HasResult: line.HasResult, Patterns: patterns,
	}
	if line.ObservedAt != nil {
		launch.ObservedAt = *line.ObservedAt
	}
	if line.TextBase64 != "" {
		text, err := base64.StdEncoding.DecodeString(line.TextBase64)
		if err != nil {
			return fmt.Errorf("decode text_base64: %w", err)
		}
		launch.Text = text
	}
	var err error
	if launch.Headers, err = headers(line.Headers); err != nil {
		return err
	}
	if launch.LocalZone, err = time.LoadLocation(line.LocalZone); err != nil {
		return fmt.Errorf("read local_zone: %w", err)
	}
	v := quota.Classify(launch)
	return json.NewEncoder(a.Out).Encode(verdictLine{
		ID: line.ID, Outcome: string(v.Outcome), ResetAt: v.ResetAt, ResetPrecision: string(v.ResetPrecision),
		Scope: string(v.Scope), Hard: v.Hard, Rule: v.Rule,
	})
}

// headers takes values as one string or as a list of strings.
func headers(raw json.RawMessage) (map[string][]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var mixed map[string]json.RawMessage
	if err := json.Unmarshal(raw, &mixed); err != nil {
		return nil, fmt.Errorf("read headers: %w", err)
	}
	out := make(map[string][]string, len(mixed))
	for name, value := range mixed {
		var one string
		var many []string
		if json.Unmarshal(value, &one) == nil {
			many = []string{one}
		} else if json.Unmarshal(value, &many) != nil {
			return nil, errors.New("read headers: the value of " + name + " is neither a string nor a list of strings")
		}
		out[name] = many
	}
	return out, nil
}
