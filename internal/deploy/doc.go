// Package deploy holds the tests of what the repository ships for deployment:
// the compose file and the image's recipe. It has no code of its own.
package deploy
