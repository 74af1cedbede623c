// Starter is the operator's program: it starts, watches and steers runs.
package main

import "mendflow/internal/startercmd"

func main() { startercmd.Main() }
