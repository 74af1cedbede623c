package gate

import (
	"bytes"
	"testing"
)

func FuzzJUnit(f *testing.F) {
	f.Add([]byte(`<testsuites><testsuite name="a"><testcase classname="c" name="n"><failure>x</failure></testcase></testsuite></testsuites>`))
	f.Add([]byte(`<testsuite><testcase name="n"><error/></testcase><testsuite><testcase name="m"><skipped/></testcase></testsuite></testsuite>`))
	f.Add([]byte(`<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "y">]><testsuite/>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := JUnit(bytes.NewReader(data))
		again, againErr := JUnit(bytes.NewReader(data))
		if (err == nil) != (againErr == nil) || len(first) != len(again) {
			t.Fatalf("read twice, it says %v (%v) and %v (%v)", first, err, again, againErr)
		}
	})
}
