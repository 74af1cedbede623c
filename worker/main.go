// Worker hosts workflows and activities.
package main

import "mendflow/internal/workercmd"

func main() { workercmd.Main() }
