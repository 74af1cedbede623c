package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"
)

// Causes that callers tell apart.
var (
	ErrNotFound   = errors.New("artifact not found")
	ErrInvalidKey = errors.New("invalid artifact key")
	ErrForeign    = errors.New("artifact belongs to another store")
	ErrFull       = errors.New("artifact store is full")
)

// folderMode keeps artifacts from other users of a machine: masking is not perfect.
const folderMode = 0o750

// Store keeps artifacts by key. It serves any number of goroutines and processes.
type Store struct {
	bucket *blob.Bucket
	base   string // URL of the store, without a slash at its end
}

// Open opens the store at a URL: file:///absolute/folder, made if it is missing,
// or mem:// for a new and empty store in memory.
func Open(_ context.Context, where string) (*Store, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	switch {
	case u.Scheme == memblob.Scheme && u.Host == "" && u.Path == "":
		return &Store{bucket: memblob.OpenBucket(nil), base: "mem://store"}, nil
	case u.Scheme != fileblob.Scheme:
		return nil, fmt.Errorf("open artifact store %q: the scheme must be file or mem", where)
	case u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("open artifact store %q: not of the form file:///absolute/folder", where)
	}
	folder := filepath.Clean(u.Path)
	bucket, err := fileblob.OpenBucket(folder, &fileblob.Options{
		CreateDir:   true,
		DirFileMode: folderMode,
		NoTempDir:   true, // a rename must not cross file systems
		Metadata:    fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("open artifact store %q: %w", where, err)
	}
	base := url.URL{Scheme: fileblob.Scheme, Path: folder}
	return &Store{bucket: bucket, base: strings.TrimSuffix(base.String(), "/")}, nil
}

// Close releases the store. Artifacts in memory are gone with it.
func (s *Store) Close() error { return s.bucket.Close() }

// URL says where an artifact is, for people and their tools. References hold
// the key alone, since a folder may have another path on another host.
func (s *Store) URL(key string) string { return s.base + "/" + key }

// key accepts a key or a URL of this store.
func (s *Store) key(name string) (string, error) {
	key, ours := strings.CutPrefix(name, s.base+"/")
	if !ours && strings.Contains(name, "://") {
		return "", fmt.Errorf("find artifact %s in %s: %w", name, s.base, ErrForeign)
	}
	return key, checkKey(key)
}

// Put keeps data under key, replacing what was there. It masks nothing.
func (s *Store) Put(ctx context.Context, key string, data []byte) (Ref, error) {
	w, err := s.Writer(ctx, key, nil)
	if err != nil {
		return Ref{}, err
	}
	_, _ = w.Write(data) // Close returns the error
	return w.Finish()
}

// PutFrom keeps what r delivers under key. When r fails nothing is kept.
func (s *Store) PutFrom(ctx context.Context, key string, r io.Reader) (Ref, error) {
	w, err := s.Writer(ctx, key, nil)
	if err != nil {
		return Ref{}, err
	}
	if _, err := io.Copy(w, r); err != nil && w.err == nil {
		w.Abort()
		return Ref{}, fmt.Errorf("read content of artifact %s: %w", key, err)
	}
	return w.Finish()
}

// Get returns an artifact, named by its key or URL.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, failure("read", name, err)
	}
	return data, nil
}

// Open returns a reader of an artifact, named by its key or URL. The caller
// closes it.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, failure("read", key, err)
	}
	return r, nil
}

// Entry describes a kept artifact.
type Entry struct {
	Key      string
	Bytes    int64
	Modified time.Time
}

// List returns the artifacts whose keys begin with prefix, ordered by key.
func (s *Store) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	var entries []Entry
	for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		object, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, failure("list", prefix, err)
		}
		if !underWay(object.Key) {
			entries = append(entries, Entry{Key: object.Key, Bytes: object.Size, Modified: object.ModTime})
		}
	}
}

// Delete removes an artifact, named by its key or URL. One that does not exist is
// [ErrNotFound].
func (s *Store) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	if err := s.bucket.Delete(ctx, key); err != nil {
		return failure("delete", key, err)
	}
	return nil
}

// failure translates an error of the bucket.
func failure(verb, key string, err error) error {
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return fmt.Errorf("%s artifact %s: %w", verb, key, ErrNotFound)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s artifact %s: %w: %w", verb, key, ErrFull, err)
	default:
		return fmt.Errorf("%s artifact %s: %w", verb, key, err)
	}
}
