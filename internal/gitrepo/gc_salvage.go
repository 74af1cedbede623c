package gitrepo

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GarbageSalvage is what a closed run did not land, once nobody is expected to ask for it any more.
// Copies in the hub are the user's and stay.
const GarbageSalvage GarbageClass = "salvage"

// SalvageGarbage lists, per mirror and run, the salvage of closed runs that is older than an instant.
// Path is the mirror; ModTime the newest of the run's salvage.
func (s *Store) SalvageGarbage(ctx context.Context, closed func(run string) bool, before time.Time) ([]Garbage, error) {
	mirrors, err := filepath.Glob(s.path(mirrorsDir, "*.git"))
	if err != nil {
		return nil, fmt.Errorf("list salvage: %w", err)
	}
	var found []Garbage
	for _, dir := range mirrors {
		res, err := s.git.run(ctx, command{
			args: []string{"for-each-ref", "--format=%(refname) %(committerdate:unix)", salvagePrefix}, dir: dir, gitDir: dir,
		})
		if err != nil {
			return nil, fmt.Errorf("list salvage of %s: %w", dir, err)
		}
		for run, newest := range newestByRun(string(res.stdout)) {
			if newest.Before(before) && closed(run) {
				found = append(found, Garbage{Class: GarbageSalvage, Run: run, Path: dir, ModTime: newest})
			}
		}
	}
	slices.SortFunc(found, func(a, b Garbage) int { return strings.Compare(a.Path+"\x00"+a.Run, b.Path+"\x00"+b.Run) })
	return found, nil
}

// newestByRun reads lines "refs/mendflow/salvage/RUN/NODE/ATTEMPT SECONDS"; what it does not
// understand is not listed.
func newestByRun(lines string) map[string]time.Time {
	newest := map[string]time.Time{}
	for line := range strings.Lines(lines) {
		name, stamp, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		rest, ours := strings.CutPrefix(name, salvagePrefix)
		run, _, below := strings.Cut(rest, "/")
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if !ours || !below || err != nil {
			continue
		}
		if at := time.Unix(seconds, 0); at.After(newest[run]) {
			newest[run] = at
		}
	}
	return newest
}

// sweepSalvage deletes a run's salvage refs from the mirror.
func (s *Store) sweepSalvage(ctx context.Context, g Garbage) error {
	state := s.mirrorState(strings.TrimSuffix(filepath.Base(g.Path), ".git"))
	format, err := readFormat(g.Path)
	if err != nil {
		return err
	}
	unlock, err := state.meta.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	refs, err := listRefs(g.Path, func(name string) bool { return strings.HasPrefix(name, salvagePrefix+g.Run+"/") })
	if err != nil || len(refs) == 0 {
		return err
	}
	var updates []refUpdate
	for _, name := range sortedKeys(refs) {
		updates = append(updates, refUpdate{name, refs[name], ""})
	}
	_, err = s.updateRefs(ctx, g.Path, format, updates)
	return err
}
