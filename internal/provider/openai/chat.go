package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	api "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// requestTimeout bounds one request: a model that thinks for long is given time,
// a dead connection does not take the whole attempt.
const requestTimeout = 8 * time.Minute

// client sends chat requests. Retries are durable and Mendflow's.
type client struct {
	chat api.Client
	own  bool // the vendor's own endpoint
}

func newClient(j job, getenv func(string) string) client {
	options := []option.RequestOption{option.WithMaxRetries(0), option.WithRequestTimeout(requestTimeout), option.WithMiddleware(keepRefusal)}
	key := "none" // servers on this machine often want none, the client wants one
	if j.Key != "" {
		key = getenv(j.Key)
	}
	options = append(options, option.WithAPIKey(key))
	if j.BaseURL != "" {
		options = append(options, option.WithBaseURL(strings.TrimSuffix(j.BaseURL, "/")+"/"))
	}
	return client{chat: api.NewClient(options...), own: j.BaseURL == ""}
}

// refusedError is a request that failed. Status 0 means that no response came.
type refusedError struct {
	status  int
	headers map[string][]string
	body    string
}

func (e *refusedError) Error() string {
	if e.status == 0 {
		return e.body
	}
	return fmt.Sprintf("status %d: %s", e.status, e.body)
}

// maxBody bounds what is kept of a refusal.
const maxBody = 64 << 10

// keepRefusal turns a refusal into an error with its headers and body.
func keepRefusal(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		body = append(body, []byte(" (cut: "+err.Error()+")")...)
	}
	headers := make(map[string][]string, len(res.Header))
	for name, values := range res.Header {
		if name != "Set-Cookie" {
			headers[strings.ToLower(name)] = values
		}
	}
	return nil, &refusedError{status: res.StatusCode, headers: headers, body: string(bytes.ToValidUTF8(body, []byte("?")))}
}

// ask sends one request and returns the first choice.
func (s *session) ask(ctx context.Context, params api.ChatCompletionNewParams) (api.ChatCompletionChoice, error) {
	params.Model = s.job.Model
	if n := int64(s.job.OutputTokens); n > 0 {
		if s.client.own {
			params.MaxCompletionTokens = api.Int(n)
		} else {
			params.MaxTokens = api.Int(n) // the name that compatible servers know
		}
	}
	completion, err := s.client.chat.Chat.Completions.New(ctx, params)
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return api.ChatCompletionChoice{}, refused
	case err != nil:
		return api.ChatCompletionChoice{}, &refusedError{body: err.Error()}
	}
	s.tell(outLine{Type: lineStep, Usage: &tokens{Input: completion.Usage.PromptTokens, Output: completion.Usage.CompletionTokens}})
	if len(completion.Choices) == 0 {
		return api.ChatCompletionChoice{}, &faultError{"the model's answer has no choices"}
	}
	choice := completion.Choices[0]
	switch {
	case choice.FinishReason == "length":
		return choice, &faultError{"the model's answer was cut at its length limit: raise the pool's `output_tokens`, or give the node a smaller task"}
	case choice.FinishReason == "content_filter":
		return choice, &faultError{"the model's answer was withheld by a content filter"}
	case choice.Message.Refusal != "":
		return choice, &faultError{"the model refused: " + choice.Message.Refusal}
	}
	return choice, nil
}

// Words by which an endpoint says that it does not know a part of a request.
var (
	toolWords   = regexp.MustCompile(`(?i)\btools?\b|tool_choice|function.?call`)
	formatWords = regexp.MustCompile(`(?i)response_?format|json_?schema|json_?object|structured|grammar`)
)

// unsupported reports whether a request was refused for a part that not every endpoint knows.
func unsupported(err error, words *regexp.Regexp) bool {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return words.MatchString(refused.body)
	default:
		return false
	}
}
