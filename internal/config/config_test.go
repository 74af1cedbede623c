package config

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/codec"
)

// elsewhere gives the test a home of its own, without settings of the user's.
func elsewhere(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "MENDFLOW_") {
			t.Setenv(name, "") // restored at the end
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("XDG_STATE_HOME", "")
	return home
}

var quiet = slog.New(slog.DiscardHandler)

func TestConnectionComesFromFlagsThenTheEcosystemsSettingsThenDefaults(t *testing.T) {
	home := elsewhere(t)
	options, err := Connection{}.Options(quiet)
	require.NoError(t, err)
	require.Equal(t, "localhost:7233", options.HostPort)
	require.Equal(t, "default", options.Namespace)

	profile := filepath.Join(home, "temporal.toml")
	require.NoError(t, os.WriteFile(profile, []byte("[profile.default]\naddress = \"profile:1\"\nnamespace = \"of-profile\"\n"), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", profile)
	options, err = Connection{}.Options(quiet)
	require.NoError(t, err)
	require.Equal(t, "profile:1", options.HostPort)
	require.Equal(t, "of-profile", options.Namespace)

	t.Setenv("TEMPORAL_ADDRESS", "environment:2")
	t.Setenv("TEMPORAL_NAMESPACE", "of-environment")
	options, err = Connection{}.Options(quiet)
	require.NoError(t, err)
	require.Equal(t, "environment:2", options.HostPort)
	require.Equal(t, "of-environment", options.Namespace)

	options, err = Connection{Address: "flag:3", Namespace: "of-flag"}.Options(quiet)
	require.NoError(t, err)
	require.Equal(t, "flag:3", options.HostPort)
	require.Equal(t, "of-flag", options.Namespace)
}

func TestOnlyLoopbackIsSpokenToWithoutCompression(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:7233": true, "localhost:7233": true, "[::1]:7233": true,
		"temporal:7233": false, "10.0.0.1:7233": false, "localhost.example:7233": false, "no-port": false,
	} {
		require.Equal(t, want, loopback(address), address)
	}
}

func TestNobodyAtTheAddressIsSaidWithWhatToDo(t *testing.T) {
	elsewhere(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	_, err = Connection{Address: address}.Dial(t.Context(), quiet)

	require.ErrorIs(t, err, ErrServerUnreachable)
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "starter dev")
}

func TestStateFolderIsMadeForItsOwnerOnly(t *testing.T) {
	home := elsewhere(t)
	dir, err := StateDir("")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, ".local", "state", "mendflow"), dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	dir, err = StateDir("")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, "state", "mendflow"), dir)

	t.Chdir(home)
	dir, err = StateDir("here")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, "here"), dir, "the flag is the folder itself, made absolute")

	require.NoError(t, os.WriteFile(filepath.Join(home, "file"), nil, 0o600))
	_, err = StateDir(filepath.Join(home, "file"))
	require.Error(t, err)
}

func TestHostKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const starters = 16
	ids := make([]string, starters)
	var wait sync.WaitGroup
	for i := range ids {
		wait.Go(func() {
			id, err := HostID(dir)
			if err == nil {
				ids[i] = id
			}
		})
	}
	wait.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id, "whoever is first names the host")
	}
	require.Regexp(t, `^[a-z0-9][a-z0-9-]*-[0-9a-f]{8}$`, ids[0])
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")

	other, err := HostID(t.TempDir())
	require.NoError(t, err)
	require.NotEqual(t, ids[0], other)
}

func TestEmptyHostIdIsNotTakenForOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host-id"), []byte("\n"), 0o600))
	_, err := HostID(dir)
	require.ErrorContains(t, err, "remove it")
}

func TestHostNamesBecomePartsOfQueueNames(t *testing.T) {
	t.Parallel()
	fit := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	for name, want := range map[string]string{
		"Build-7.example.org": "build-7-example-org", "rechner ü": "rechner", "-x-": "x", "": "host", "ü": "host",
		strings.Repeat("long-", 20): "long-long-long-long-long-long-lo",
	} {
		word := hostWord(name)
		require.Equal(t, want, word, name)
		require.Regexp(t, fit, word)
		require.LessOrEqual(t, len(word), 32)
	}
}

func TestArtifactsLieWhereItIsSaid(t *testing.T) {
	home := elsewhere(t)
	state := filepath.Join(home, "state")
	where, err := ArtifactsURL("", state)
	require.NoError(t, err)
	require.Equal(t, "file://"+state+"/artifacts", where)
	require.DirExists(t, filepath.Join(state, "artifacts"))

	t.Setenv("MENDFLOW_ARTIFACTS", "s3://bucket?region=x")
	where, err = ArtifactsURL("", state)
	require.NoError(t, err)
	require.Equal(t, "s3://bucket?region=x", where)

	t.Chdir(home)
	where, err = ArtifactsURL("with blank & ü", state)
	require.NoError(t, err)
	require.Equal(t, "file://"+home+"/with%20blank%20&%20%C3%BC", where, "the flag wins, a path becomes a URL")
	require.DirExists(t, filepath.Join(home, "with blank & ü"))
}

func TestCodecKeysComeFromTheFlagsFileThenTheEnvironment(t *testing.T) {
	home := elsewhere(t)
	key := func(id string) string {
		line, err := codec.NewKey(id)
		require.NoError(t, err)
		return line + "\n"
	}
	ids := func(c Connection) []string {
		t.Helper()
		ring, err := c.keys()
		require.NoError(t, err)
		return ring.IDs()
	}
	require.Empty(t, ids(Connection{}), "nothing is encrypted unless somebody asks for it")

	file, other := filepath.Join(home, "keys"), filepath.Join(home, "other")
	require.NoError(t, os.WriteFile(file, []byte(key("of-file")), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(key("of-flag")), 0o600))
	t.Setenv("MENDFLOW_CODEC_KEYS_FILE", file)
	require.Equal(t, []string{"of-file"}, ids(Connection{}))
	t.Setenv("MENDFLOW_CODEC_KEYS", key("young")+key("old"))
	require.Equal(t, []string{"young", "old"}, ids(Connection{}))
	require.Equal(t, []string{"of-flag"}, ids(Connection{CodecKeys: other}))

	_, err := Connection{CodecKeys: filepath.Join(home, "missing")}.Options(quiet)
	require.ErrorContains(t, err, "read codec keys")
	require.NoError(t, os.WriteFile(other, []byte("a:short"), 0o600))
	_, err = Connection{CodecKeys: other}.Options(quiet)
	require.ErrorContains(t, err, other)
	t.Setenv("MENDFLOW_CODEC_KEYS", "a:short")
	_, err = Connection{}.Options(quiet)
	require.ErrorContains(t, err, "MENDFLOW_CODEC_KEYS: read key 1")
}

func TestHostWithItsStoreInItsOwnStateFolderIsAlone(t *testing.T) {
	home := elsewhere(t)
	state := filepath.Join(home, "state")
	for flag, shared := range map[string]bool{
		"": false, filepath.Join(state, "elsewhere"): false, filepath.Join(home, "store"): true, state + "-2": true,
		"s3://bucket?region=eu": true,
	} {
		where, err := ArtifactsURL(flag, state)
		require.NoError(t, err)
		require.Equal(t, shared, ArtifactsShared(where, state), where)
	}
}
