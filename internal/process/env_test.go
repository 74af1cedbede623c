package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
)

func TestEnvironmentIsAnAllowList(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".rustup"), 0o700))
	downloads := filepath.Join(home, "go/pkg/mod/cache/download")
	require.NoError(t, os.MkdirAll(downloads, 0o700))
	env, err := process.Environment{
		Host: []string{
			"PATH=/usr/bin", "HOME=/home/op", "LANG=de_DE.UTF-8", "TZ=Asia/Tokyo", "SSH_AUTH_SOCK=/x", "AWS_SECRET_ACCESS_KEY=s",
			"TEMPORAL_ADDRESS=a", "GIT_DIR=/g", "OPENAI_API_KEY=o", "ANTHROPIC_API_KEY=k", "GITHUB_TOKEN=t", "MENDFLOW_MARK=m",
			"LD_PRELOAD=/evil.so", "HTTPS_PROXY=http://p", "GOFLAGS=-mod=mod", "TMPDIR=/tmp", "EMPTY=", "GOPROXY=http://goproxy",
		},
		HostHome: home, Home: "/private/home", Temp: "/private/tmp",
		Pass: []string{"ANTHROPIC_API_KEY", "EMPTY", "NOT_SET"},
		Set:  map[string]string{"MENDFLOW_RUN": "r1", "LANG": "C"},
	}.Build()
	require.NoError(t, err)
	require.Equal(t, []string{
		"ANTHROPIC_API_KEY=k", "CARGO_HOME=/private/home/.cargo",
		"GOPROXY=file://" + downloads + ",http://goproxy", "HOME=/private/home", "HTTPS_PROXY=http://p", "LANG=C",
		"MENDFLOW_RUN=r1", "PATH=/usr/bin", "RUSTUP_HOME=" + home + "/.rustup", "TMPDIR=/private/tmp", "TZ=UTC",
	}, env)
}

func TestSomeVariablesAreNeverPassed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"TEMPORAL_API_KEY", "GIT_SSH_COMMAND", "MENDFLOW_STATE", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "", "A=B"} {
		_, err := process.Environment{Home: "/h", Temp: "/t", Pass: []string{name}}.Build()
		require.Error(t, err, name)
	}
	_, err := process.Environment{Home: "relative", Temp: "/t"}.Build()
	require.Error(t, err)
	_, err = process.Environment{Home: "/h", Temp: "/t", Set: map[string]string{"A": "\x00"}}.Build()
	require.Error(t, err)
}
