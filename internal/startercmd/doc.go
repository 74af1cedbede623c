// Package startercmd is the program `starter`: the operator's side of
// Mendflow. Every command is a function of (context, arguments, streams), talks
// to Temporal through the client and to people through lines or JSON.
//
// It holds no rules of the product: what a command means is decided by the
// workflows and the pure packages.
package startercmd
