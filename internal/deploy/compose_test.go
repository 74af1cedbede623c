package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

const (
	root      = "../.."
	codecFile = "docker-compose.codec.yml"
)

// load reads the compose file as compose itself does.
func load(t *testing.T, more ...string) *types.Project {
	t.Helper()
	files := []string{filepath.Join(root, "docker-compose.yml")}
	for _, name := range more {
		files = append(files, filepath.Join(root, name))
	}
	options, err := cli.NewProjectOptions(files,
		cli.WithEnv([]string{"POSTGRES_PASSWORD=secret"}), cli.WithResolvedPaths(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func TestComposeFileNeedsAPassword(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithEnv(nil))
	require.NoError(t, err)
	_, err = options.LoadProject(t.Context())
	require.ErrorContains(t, err, "POSTGRES_PASSWORD")
}

func TestComposeRunsTemporalOnPostgreSQLWithUIAndWorker(t *testing.T) {
	t.Parallel()
	project := load(t)
	require.ElementsMatch(t, []string{"postgresql", "temporal", "ui", "setup", "worker"}, project.ServiceNames())
	temporal := project.Services["temporal"]
	require.Equal(t, "postgres12", *temporal.Environment["DB"])
	require.Equal(t, "postgresql", *temporal.Environment["POSTGRES_SEEDS"])
	require.Equal(t, types.ServiceConditionHealthy, temporal.DependsOn["postgresql"].Condition)
	require.Equal(t, types.ServiceConditionCompletedSuccessfully, project.Services["worker"].DependsOn["setup"].Condition)
}

func TestComposeWorkerIsTheSameHostAfterARestart(t *testing.T) {
	t.Parallel()
	project := load(t)
	worker := project.Services["worker"]
	require.NotNil(t, worker.Init)
	require.True(t, *worker.Init, "init reaps what agents leave behind")
	require.Equal(t, "mendflow-worker-1", worker.Hostname)
	require.NotNil(t, worker.StopGracePeriod)
	var state *types.ServiceVolumeConfig
	for i, v := range worker.Volumes {
		if v.Type == types.VolumeTypeVolume {
			state = &worker.Volumes[i]
		}
	}
	require.NotNil(t, state, "the state lives in a named volume")
	require.Contains(t, project.Volumes, state.Source)
	require.Equal(t, filepath.Join(*worker.Environment["XDG_STATE_HOME"], "mendflow"), state.Target, "the volume is the state folder")
}

func TestComposeWithTheCodecGivesItsKeysToWhoNeedsThem(t *testing.T) {
	t.Parallel()
	project := load(t, codecFile)
	endpoint := *project.Services["ui"].Environment["TEMPORAL_CODEC_ENDPOINT"]
	codec := project.Services["codec"]
	require.Len(t, codec.Ports, 1)
	require.Equal(t, "http://"+codec.Ports[0].HostIP+":"+codec.Ports[0].Published, endpoint)
	page := "http://" + project.Services["ui"].Ports[0].HostIP + ":" + project.Services["ui"].Ports[0].Published
	require.Contains(t, codec.Command, page, "the Web UI's pages may ask")
	for _, name := range []string{"codec", "worker"} {
		service := project.Services[name]
		require.Len(t, service.Secrets, 1, name)
		require.Equal(t, "/run/secrets/"+service.Secrets[0].Source, *service.Environment["MENDFLOW_CODEC_KEYS_FILE"], name)
		require.Contains(t, project.Secrets, service.Secrets[0].Source)
	}
	for _, name := range []string{"temporal", "postgresql", "ui"} {
		require.Empty(t, project.Services[name].Secrets, "%s never has a key", name)
	}
}

func TestComposePublishesOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for name, service := range load(t, codecFile).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
		}
	}
}

// pinned is an image with a version.
var pinned = regexp.MustCompile(`^[a-z0-9./-]+:[0-9][0-9.]*$`)

func TestComposeImagesArePinnedOrBuiltHere(t *testing.T) {
	t.Parallel()
	recipe, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	for name, service := range load(t, codecFile).Services {
		if service.Build == nil {
			require.Regexp(t, pinned, service.Image, name)
			continue
		}
		require.Equal(t, "mendflow:local", service.Image, name)
		program := service.Command[0]
		require.Contains(t, string(recipe), "/out/"+program+" ./"+program, "the image builds %s", program)
	}
	require.NotContains(t, strings.ToLower(string(recipe)), ":latest")
}
