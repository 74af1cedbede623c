package run

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// RequestMemory is how many requests an entity remembers (control.md).
const RequestMemory = 1000

// Requests remembers what operators asked for by request id, so that a repeated
// request is answered as the first time instead of being carried out again, and
// an id that comes back with another payload is refused. A is the answer that is
// repeated. It keeps digests: a thousand requests must fit into carried state.
// The zero value remembers nothing; it marshals as the list of its requests.
type Requests[A any] struct {
	list []remembered[A] // oldest first
}

// remembered is one request.
type remembered[A any] struct {
	Request string `json:"r"` // digest of the id, a dot, digest of what was asked
	Answer  A      `json:"a,omitzero"`
}

// Recall looks a request up. known reports that it was carried out before, with
// the answer it got then. The error says that the id stood for something else.
// A request without an id is never known.
func (q *Requests[A]) Recall(id, what string) (answer A, known bool, err error) {
	if id == "" {
		return answer, false, nil
	}
	key, asked := digest(id), digest(what)
	for _, r := range q.list {
		of, before, _ := strings.Cut(r.Request, ".")
		switch {
		case of != key:
		case before != asked:
			return answer, true, fmt.Errorf("repeat request %.100s: it asked for something else before: use another request id", id)
		default:
			return r.Answer, true, nil
		}
	}
	return answer, false, nil
}

// Remember keeps what a request was answered; one without an id is forgotten at
// once, and the oldest goes when there are more than RequestMemory. A request
// that is known already stays as it was.
func (q *Requests[A]) Remember(id, what string, answer A) {
	if _, known, _ := q.Recall(id, what); id == "" || known {
		return
	}
	q.list = append(q.list, remembered[A]{digest(id) + "." + digest(what), answer})
	q.list = slices.Delete(q.list, 0, max(0, len(q.list)-RequestMemory))
}

// Len is the number of requests remembered.
func (q *Requests[A]) Len() int { return len(q.list) }

// MarshalJSON writes the list of requests.
func (q Requests[A]) MarshalJSON() ([]byte, error) {
	if q.list == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(q.list)
}

// UnmarshalJSON reads what MarshalJSON wrote, or a list of bare digests as
// brokers carried it before answers were kept.
func (q *Requests[A]) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	q.list = nil
	for _, raw := range list {
		var r remembered[A]
		if len(raw) > 0 && raw[0] == '"' {
			if err := json.Unmarshal(raw, &r.Request); err != nil {
				return err
			}
		} else if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		q.list = append(q.list, r)
	}
	return nil
}

// IsZero reports that nothing is remembered, for omitzero.
func (q Requests[A]) IsZero() bool { return len(q.list) == 0 }

func digest(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return strconv.FormatUint(h.Sum64(), 36)
}
