package gate

import (
	"encoding/xml"
	"path"
	"slices"
)

// pom is what discovery reads of a pom.xml.
type pom struct {
	Modules []string `xml:"modules>module"`
}

// maven offers compilation and tests of each top project; its modules come with it.
// The tests of every module run even if some fail, so that a baseline knows them all.
func (s *scan) maven() {
	covered := map[string]bool{}
	for _, dir := range s.dirsOf("pom.xml") {
		p := path.Join(dir, "pom.xml")
		var file pom
		if err := xml.Unmarshal(s.read(p), &file); err != nil {
			if s.err == nil {
				s.warn(p, err)
			}
			continue
		}
		for _, m := range file.Modules {
			m = path.Join(dir, m)
			if path.Base(m) == "pom.xml" {
				m = path.Dir(m)
			}
			covered[m] = true
		}
		if covered[dir] {
			s.source(dir, "pom.xml")
			continue
		}
		mvn := "mvn"
		if s.has(dir, "mvnw") {
			mvn = "./mvnw"
		}
		s.add(LayerBuild, dir, mvn, "--batch-mode", "--no-transfer-progress", "test-compile")
		s.add(LayerTest, dir, mvn, "--batch-mode", "--no-transfer-progress", "--fail-at-end", "test")
		s.source(dir, "pom.xml", "mvnw", ".mvn/wrapper/maven-wrapper.properties", ".mvn/maven.config", ".mvn/jvm.config", ".mvn/extensions.xml")
	}
}

var gradleFiles = []string{"settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"}

// gradle offers assembly and checks of each top project; a settings file speaks for everything below it.
func (s *scan) gradle() {
	settings := s.dirsOf("settings.gradle", "settings.gradle.kts")
	for _, dir := range s.dirsOf(gradleFiles...) {
		if root := enclosing(dir, settings); root != "" && root != dir {
			s.source(dir, gradleFiles...)
			continue
		}
		if slices.ContainsFunc(settings, func(d string) bool { return d != dir && within(dir, d) }) {
			continue // an included build: its parent runs it
		}
		gradle := "gradle"
		if s.has(dir, "gradlew") {
			gradle = "./gradlew"
		}
		// Without the daemon: no process of a gate outlives it.
		s.add(LayerBuild, dir, gradle, "--no-daemon", "--console=plain", "assemble")
		s.add(LayerTest, dir, gradle, "--no-daemon", "--console=plain", "--continue", "check")
		s.source(dir, append(slices.Clone(gradleFiles), "gradle.properties", "gradlew", "gradle/wrapper/gradle-wrapper.properties")...)
	}
}
