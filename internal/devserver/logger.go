package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// serverLogger writes the server's log as plain lines. Tags are kept as they come and rendered only for a line that is written:
// the server derives a logger per task, nearly all of which stay silent.
type serverLogger struct {
	out    *slog.Logger
	silent *atomic.Bool // shared by all that derive from one; set while the server stops
	tags   []tag.Tag
}

var (
	_ log.Logger     = (*serverLogger)(nil)
	_ log.WithLogger = (*serverLogger)(nil)
)

func newLogger(w io.Writer, level slog.Level) *serverLogger {
	return &serverLogger{
		out:    slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})),
		silent: &atomic.Bool{},
	}
}

// silence ends the log but for what ends the process: services that stop one after the other complain of each other's absence.
func (l *serverLogger) silence() { l.silent.Store(true) }

// httpNotice is a warning about what is left out on purpose.
const httpNotice = "HTTP API port has not been set"

func (l *serverLogger) Debug(msg string, tags ...tag.Tag) { l.log(slog.LevelDebug, msg, tags) }
func (l *serverLogger) Info(msg string, tags ...tag.Tag)  { l.log(slog.LevelInfo, msg, tags) }
func (l *serverLogger) Warn(msg string, tags ...tag.Tag)  { l.log(slog.LevelWarn, msg, tags) }
func (l *serverLogger) Error(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// DPanic panics in a development build of the server only; here it is an error.
func (l *serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

func (l *serverLogger) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal is called where the server cannot go on, as when a port was taken in the last moment.
func (l *serverLogger) Fatal(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	os.Exit(exitError)
}

func (l *serverLogger) With(tags ...tag.Tag) log.Logger {
	return &serverLogger{out: l.out, silent: l.silent, tags: slices.Concat(l.tags, tags)}
}

func (l *serverLogger) log(level slog.Level, msg string, tags []tag.Tag) {
	if l.out.Enabled(context.Background(), level) && !l.silent.Load() && !strings.HasPrefix(msg, httpNotice) {
		l.write(level, msg, tags)
	}
}

func (l *serverLogger) write(level slog.Level, msg string, tags []tag.Tag) {
	attrs := make([]slog.Attr, 0, len(l.tags)+len(tags))
	for _, t := range slices.Concat(l.tags, tags) {
		attrs = append(attrs, slog.Any(t.Key(), t.Value()))
	}
	l.out.LogAttrs(context.Background(), level, msg, attrs...)
}
