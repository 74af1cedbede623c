package redact

// Held is the room that the writer has taken to hold bytes back, beyond the part
// of a write that it looks at.
func (w *Writer) Held() int { return cap(w.pending) - step }
