package artifacts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"mendflow/internal/artifacts"
	"mendflow/internal/redact"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "__put" {
		os.Exit(put(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == "__fill" {
		os.Exit(fill(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// put writes the same key again and again, as another process.
func put(where, content string) int {
	ctx := context.Background()
	s, err := artifacts.Open(ctx, where)
	if err != nil {
		return 1
	}
	for range 200 {
		if _, err := s.Put(ctx, "shared/key", bytes.Repeat([]byte(content), 10_000)); err != nil {
			return 2
		}
	}
	return 0
}

// both runs a test on a folder and in memory.
func both(t *testing.T, test func(t *testing.T, s *artifacts.Store)) {
	t.Helper()
	t.Parallel()
	for name, where := range map[string]string{"file": "file://" + filepath.Join(t.TempDir(), "new folder", "ü"), "mem": "mem://"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := artifacts.Open(t.Context(), where)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			test(t, s)
		})
	}
}

func TestWhatWasPutIsReadBack(t *testing.T) {
	both(t, func(t *testing.T, s *artifacts.Store) {
		data := []byte("line one\nline two\n")
		ref, err := s.Put(t.Context(), "run-1/n1/a2/worker.log", data)
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, artifacts.Ref{
			URI: "run-1/n1/a2/worker.log", SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data)), Tail: string(data),
		}, ref)
		for _, name := range []string{ref.URI, s.URL(ref.URI)} {
			got, err := s.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, data, got)
		}
		r, err := s.Open(t.Context(), ref.URI)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, data, got)

		again, err := s.PutFrom(t.Context(), ref.URI, strings.NewReader("other"))
		require.NoError(t, err)
		require.EqualValues(t, 5, again.Bytes)
		got, err = s.Get(t.Context(), ref.URI)
		require.NoError(t, err)
		require.Equal(t, "other", string(got))
	})
}

func TestReferenceOnTheWire(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(artifacts.Ref{URI: "k", SHA256: "s", Bytes: 3, Tail: "t"})
	require.NoError(t, err)
	require.JSONEq(t, `{"uri":"k","sha256":"s","bytes":3,"tail":"t"}`, string(b))
}

func TestMissingArtifactIsNotFound(t *testing.T) {
	both(t, func(t *testing.T, s *artifacts.Store) {
		_, err := s.Get(t.Context(), "no/such")
		require.ErrorIs(t, err, artifacts.ErrNotFound)
		require.ErrorIs(t, s.Delete(t.Context(), "no/such"), artifacts.ErrNotFound)
		list, err := s.List(t.Context(), "no/")
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

func TestListAndDeleteByPrefix(t *testing.T) {
	both(t, func(t *testing.T, s *artifacts.Store) {
		for _, key := range []string{"r1/b", "r1/a/x", "r2/c", "r10/d"} {
			_, err := s.Put(t.Context(), key, []byte(key))
			require.NoError(t, err)
		}
		keys := func(prefix string) (keys []string) {
			list, err := s.List(t.Context(), prefix)
			require.NoError(t, err)
			for _, e := range list {
				require.EqualValues(t, len(e.Key), e.Bytes)
				require.False(t, e.Modified.IsZero())
				keys = append(keys, e.Key)
			}
			return keys
		}
		require.Equal(t, []string{"r1/a/x", "r1/b"}, keys("r1/"))
		require.Equal(t, []string{"r1/a/x", "r1/b", "r10/d", "r2/c"}, keys(""))
		require.NoError(t, s.Delete(t.Context(), "r1/b"))
		require.Equal(t, []string{"r1/a/x"}, keys("r1/"))
	})
}

func TestKeyCannotEscapeTheStore(t *testing.T) {
	both(t, func(t *testing.T, s *artifacts.Store) {
		for _, key := range []string{
			"", "/", "/etc/passwd", "..", "a/../b", "a/..", "../a", "a//b", "a/", "./a", "a/.", "a\x00b", "a b", "a\nb", "ä",
			`a\b`, "%2e%2e/a", "a:b", strings.Repeat("a", 201), strings.Repeat("a/", 600) + "a", "a.0123456789abcdef.tmp",
		} {
			_, err := s.Put(t.Context(), key, nil)
			require.ErrorIs(t, err, artifacts.ErrInvalidKey, "%q", key)
			_, err = s.Get(t.Context(), key)
			require.ErrorIs(t, err, artifacts.ErrInvalidKey, "%q", key)
			require.ErrorIs(t, s.Delete(t.Context(), key), artifacts.ErrInvalidKey, "%q", key)
		}
		_, err := s.List(t.Context(), "../")
		require.ErrorIs(t, err, artifacts.ErrInvalidKey)
		_, err = s.Get(t.Context(), "file:///etc/passwd")
		require.ErrorIs(t, err, artifacts.ErrForeign)
	})
}

func TestTailIsTheValidEndOfTheContent(t *testing.T) {
	t.Parallel()
	s, err := artifacts.Open(t.Context(), "mem://")
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ü", "€", "𝄞", "\xff", strings.Repeat("x€", 1500), strings.Repeat("€", 1400), strings.Repeat("y", 4095), "\n"}), 0, 20).Draw(rt, "parts")
		whole := strings.Join(parts, "")
		w, err := s.Writer(t.Context(), "k", nil)
		require.NoError(rt, err)
		for _, p := range parts {
			_, err := io.WriteString(w, p)
			require.NoError(rt, err)
		}
		ref, err := w.Finish()
		require.NoError(rt, err)
		require.True(rt, utf8.ValidString(ref.Tail))
		require.LessOrEqual(rt, len(ref.Tail), artifacts.MaxTail)
		require.EqualValues(rt, len(whole), ref.Bytes)
		if valid := strings.ToValidUTF8(whole, "?"); utf8.ValidString(whole) {
			require.True(rt, strings.HasSuffix(valid, ref.Tail))
			require.GreaterOrEqual(rt, len(ref.Tail), min(len(whole), artifacts.MaxTail-utf8.UTFMax))
		}
	})
}

func TestWriterMasksBeforeAnythingIsKept(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	for name, masker := range map[string]*redact.Masker{"masked": redact.NewMasker([]string{secret}), "off": nil} {
		folder := t.TempDir()
		s, err := artifacts.Open(t.Context(), "file://"+folder)
		require.NoError(t, err)
		w, err := s.Writer(t.Context(), "log", masker)
		require.NoError(t, err)
		for _, part := range []string{"the key is hunt", "er2-hun", "ter2\n"} {
			_, err := io.WriteString(w, part)
			require.NoError(t, err)
		}
		ref, err := w.Finish()
		require.NoError(t, err)
		onDisk, err := os.ReadFile(filepath.Join(folder, "log"))
		require.NoError(t, err)
		sum := sha256.Sum256(onDisk)
		require.Equal(t, hex.EncodeToString(sum[:]), ref.SHA256, "the digest is of what is kept")
		require.EqualValues(t, len(onDisk), ref.Bytes)
		// With masking off the search must find the secret.
		require.Equal(t, name == "off", strings.Contains(string(onDisk), secret))
		require.Equal(t, name == "off", strings.Contains(ref.Tail, secret))
		require.NoError(t, s.Close())
	}
}

func TestArtifactIsOneFileAndAppearsWhole(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, err := artifacts.Open(t.Context(), "file://"+folder)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	w, err := s.Writer(t.Context(), "a/b", nil)
	require.NoError(t, err)
	_, err = w.Write([]byte("half"))
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "a/b")
	require.ErrorIs(t, err, artifacts.ErrNotFound)
	list, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, list, "what is under way is not listed")
	require.NoError(t, w.Close())
	_, err = w.Write([]byte("late"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Equal(t, []string{"a/b"}, files(t, folder))

	w, err = s.Writer(t.Context(), "a/c", nil)
	require.NoError(t, err)
	_, err = w.Write([]byte("half"))
	require.NoError(t, err)
	w.Abort()
	require.Error(t, w.Close())

	ctx, cancel := context.WithCancel(t.Context())
	w, err = s.Writer(ctx, "a/d", nil)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, w.Close(), context.Canceled)

	_, err = s.PutFrom(t.Context(), "a/e", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("torn"))))
	require.ErrorContains(t, err, "torn")
	require.Equal(t, []string{"a/b"}, files(t, folder))
}

func files(t *testing.T, folder string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(folder, path)
			names = append(names, name)
		}
		return err
	}))
	return names
}

func TestTwoProcessesWritingOneKeyDoNoHarm(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	where := "file://" + folder
	s, err := artifacts.Open(t.Context(), where)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	_, err = s.Put(t.Context(), "shared/key", bytes.Repeat([]byte("a"), 10_000))
	require.NoError(t, err)

	var writers sync.WaitGroup
	for _, content := range []string{"a", "bb"} {
		writers.Go(func() {
			if out, err := exec.Command(self, "__put", where, content).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	for done := false; !done; {
		select {
		case <-ended:
			done = true
		default:
		}
		got, err := s.Get(t.Context(), "shared/key")
		require.NoError(t, err)
		require.True(t, string(got) == strings.Repeat("a", 10_000) || string(got) == strings.Repeat("bb", 10_000), "torn: %d bytes", len(got))
	}
	require.Equal(t, []string{"shared/key"}, files(t, folder))
}

func TestOpenRefusesWhatItCannotServe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, where := range []string{"", "s3://bucket", "file://host/x", "file:relative", "file:///x?metadata=skip", "mem://x", "/plain", "file://" + file, "::"} {
		_, err := artifacts.Open(t.Context(), where)
		require.Error(t, err, "%q", where)
	}
}
