package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/redact"
)

const secret = "Tr0ub4dor&3/horse+battery="

// wrap breaks s into lines of n bytes, as base64(1) does.
func wrap(s string, n int, end string) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + end)
		s = s[n:]
	}
	return b.String() + s
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// everyByte escapes every byte, with digits in lower case.
func everyByte(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString("%" + hex.EncodeToString([]byte{c}))
	}
	return b.String()
}

// printed are the ways in which a program may print the secret.
func printed(s string) map[string]string {
	std, raw := base64.StdEncoding, base64.RawURLEncoding
	return map[string]string{
		"plain":               s,
		"json":                quoted(s),
		"json in json":        quoted(`{"key":` + quoted(s) + `}`),
		"query":               url.QueryEscape(s),
		"path":                url.PathEscape(s),
		"every byte escaped":  everyByte(s),
		"hex":                 hex.EncodeToString([]byte(s)),
		"base64 at 0":         std.EncodeToString([]byte(s)),
		"base64 at 1":         std.EncodeToString([]byte("x" + s + "tail")),
		"base64 at 2":         std.EncodeToString([]byte("xy" + s + "t")),
		"base64url at 0":      raw.EncodeToString([]byte(s)),
		"base64url at 1":      raw.EncodeToString([]byte("a" + s)),
		"base64url at 2":      raw.EncodeToString([]byte("ab" + s)),
		"basic credentials":   "Authorization: Basic " + std.EncodeToString([]byte("user:"+s)),
		"colour inside":       s[:5] + "\x1b[31m" + s[5:],
		"colours everywhere":  strings.Join(strings.Split(s, ""), "\x1b[0;1m"),
		"hyperlink inside":    s[:9] + "\x1b]8;;http://x\x07" + s[9:],
		"hyperlink with ST":   s[:9] + "\x1b]8;;http://x\x1b\\" + s[9:],
		"charset switch":      s[:3] + "\x1b(B" + s[3:],
		"code before":         "\x1b[" + s,
		"colour json-escaped": s[:5] + `\u001b[31m` + s[5:],
		"wrapped line":        s[:12] + "\n" + s[12:],
		"wrapped by CRLF":     s[:12] + "\r\n    " + s[12:],
		"base64 wrapped":      wrap(std.EncodeToString([]byte("long prefix "+s)), 20, "\n"),
		"base64 wrapped json": wrap(std.EncodeToString([]byte("long prefix "+s)), 20, `\n`),
	}
}

func TestValueIsMaskedHoweverItIsPrinted(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker([]string{"another-secret-1", secret})
	for name, text := range printed(secret) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := m.String("before " + text + " after")
			require.Contains(t, got, redact.Mark)
			require.True(t, strings.HasPrefix(got, "before ") && strings.HasSuffix(got, " after"), "%q", got)
			require.NotContains(t, got, text)
			require.Equal(t, got, m.String(got), "masking twice changes nothing")
		})
	}
}

func TestOffMasksNothing(t *testing.T) {
	t.Parallel()
	for _, text := range printed(secret) {
		require.Equal(t, text, redact.Off().String(text))
		var out bytes.Buffer
		w := redact.Off().Writer(&out)
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.Equal(t, text, out.String())
	}
}

func TestKnownCredentialsAreMasked(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker(nil)
	r := strings.Repeat("aB3dE5gH7j", 20)
	pem := "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + wrap(r, 64, "\n") + "\n-----END RSA PRIVATE KEY-----"
	for text, want := range map[string]string{
		"key sk-" + r[:48] + "!":                      "key [masked]!",
		"sk-ant-api03-" + r[:80] + "-AA x":            "[masked] x",
		`{"t":"line\nsk-proj-` + r[:60] + `"}`:        `{"t":"line\n[masked]"}`,
		`\nsk-` + r[:40]:                              `\n[masked]`,
		"k%3Dsk-" + r[:40]:                            "k%3D[masked]",
		"\x1b[32msk-" + r[:40] + "\x1b[0m":            "\x1b[32m[masked]\x1b[0m",
		"ghp_" + r[:10] + "\x1b[1m" + r[10:36] + "\n": "[masked]\n",
		"ghp_" + r[:36] + "\n":                        "[masked]\n",
		"(github_pat_" + r[:22] + "_" + r[:59] + ")":  "([masked])",
		"AKIAIOSFODNN7EXAMPLE.":                       "[masked].",
		"AIza" + r[:35] + " ":                         "[masked] ",
		"xoxb-123456789012-" + r[:24] + ",":           "[masked],",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U;": "[masked];",
		"Authorization: Bearer " + r[:40] + "\r\n":                                              "Authorization: Bearer [masked]\r\n",
		`"authorization":"bearer ` + r[:40] + `"`:                                               `"authorization":"bearer [masked]"`,
		"https://bot:" + r[:12] + "@example.com/x":                                              "https://bot:[masked]@example.com/x",
		pem + "\nnext":          strings.Repeat("[masked]\n", 2) + "\n" + strings.Repeat("[masked]\n", 5) + "next",
		"{" + quoted(pem) + "}": "{\"[masked]\"}",
	} {
		require.Equal(t, want, m.String(text), "%q", text)
	}
}

func TestOrdinaryTextPasses(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker([]string{secret})
	for _, text := range []string{
		"task-management-of-the-2026-release and risk-assessment-for-everything-in-2026",
		"see https://example.com:8080/a/b@v1.2.3 and git@github.com:a/b.git, http://h/x?y=z:1@2",
		"Bearer of good news, the bearer understands-everything-well",
		"eyJub3QiOiJhIHRva2VuIn0= is base64, eyJ. is nothing",
		"sk-learn-is-a-library-for-machine-learning",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n",
		"Tr0ub4dor&3/horse+batter", "\x1b[31mred\x1b[0m \\u001b \\ \\\\n C:\\new\\u00e4",
		"ghp_short", "AKIA", "", "\n", "\\", "\x1b", "\x1b[",
	} {
		require.Equal(t, text, m.String(text))
	}
}

func TestSeveralLineSecretIsMaskedLineByLine(t *testing.T) {
	t.Parallel()
	line := "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
	key := "header one\n" + line + "\nfooter"
	m := redact.NewMasker([]string{key + "\n"})
	require.Equal(t, "x "+redact.Mark+" y", m.String("x "+line+" y"))
	require.Equal(t, redact.Mark+"\n"+redact.Mark+"\n"+redact.Mark+"\nz", m.String(key+"\nz"))
	require.NotContains(t, m.String(quoted(key)), "footer")
}

func TestWrappedBase64IsMaskedAtEveryWidth(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker([]string{secret})
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte("some longer prefix" + "ab"[:min(shift, 2)] + secret + " and a longer tail"))
		inner := base64.StdEncoding.EncodeToString([]byte("some longer prefix" + "ab"[:min(shift, 2)] + secret))
		inner = inner[28 : len(inner)-4]
		for width := 4; width <= 76; width++ {
			got := strings.ReplaceAll(m.String(wrap(text, width, "\n")), "\n", "")
			for i := range len(inner) - 6 {
				require.NotContains(t, got, inner[i:i+6], "shift %d width %d", shift, width)
			}
		}
	}
}

func TestOverlappingSecretsAreCoveredTogether(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker([]string{"abcd1234efgh", "1234efghXYZ9", "efgh5678"})
	require.Equal(t, "<"+redact.Mark+">", m.String("<abcd1234efghXYZ9>"))
	require.Equal(t, "<"+redact.Mark+">", m.String("<abcd1234efgh5678>"))
}

func TestCommonValuesAreNotSecrets(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker([]string{"short", "aaaaaaaaaaaa", "PASSWORD", "  ", secret, "abababababab"})
	require.Equal(t, []string{
		"secret 1: shorter than 8 bytes",
		"secret 2: fewer than 4 different bytes",
		"secret 3: an ordinary word",
		"secret 6: fewer than 4 different bytes",
	}, m.Ignored())
	require.Equal(t, "short PASSWORD "+redact.Mark, m.String("short PASSWORD "+secret))
}

func TestLineWithoutSecretIsReleasedAtOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := redact.NewMasker([]string{secret}).Writer(&out)
	line := `{"type":"turn.completed","usage":{"input_tokens":3},"text":"a\nb"}` + "\n"
	_, err := io.WriteString(w, line)
	require.NoError(t, err)
	require.Equal(t, line, out.String())
}

func TestMaskerHoldsBackNoMoreThanItMustKnow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := redact.NewMasker([]string{secret}).Writer(&out)
	for _, text := range []string{"sk-", "://", "eyJ", "ghp_", "\x1b]", "-----BEGIN RSA PRIVATE KEY-----"} {
		_, err := io.WriteString(w, text+strings.Repeat("a", 1<<20))
		require.NoError(t, err)
	}
	require.Greater(t, out.Len(), 5<<20-8<<10)
	require.NoError(t, w.Close())
}

type failing struct{}

var errDisk = errors.New("disk full")

func (failing) Write([]byte) (int, error) { return 0, errDisk }

func TestErrorOfTheDestinationIsReturned(t *testing.T) {
	t.Parallel()
	w := redact.NewMasker(nil).Writer(failing{})
	_, err := io.WriteString(w, "hello\n")
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, w.Close(), errDisk)

	w = redact.NewMasker(nil).Writer(io.Discard)
	require.NoError(t, w.Close())
	_, err = io.WriteString(w, "late")
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
