package main

import (
	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
)

// startUI serves the Web UI in the background until it is stopped.
func startUI(opts options, port int, frontend string) *uiserver.Server {
	host := opts.ip.String()
	if opts.ip.To4() == nil {
		host = "[" + host + "]" // the UI server joins host and port itself
	}
	ui := uiserver.NewServer(uioptions.WithConfigProvider(&uiconfig.Config{
		TemporalGRPCAddress: frontend,
		Host:                host,
		Port:                port,
		EnableUI:            true,
		DefaultNamespace:    opts.namespace,
		DisableNewsFetch:    true,
		Codec:               uiconfig.Codec{Endpoint: opts.codecEndpoint},
		HideLogs:            true,
		CORS:                uiconfig.CORS{CookieInsecure: true}, // it is plain HTTP
	}))
	go func() { _ = ui.Start() }() // ends with Stop; a failure to listen ends the process
	return ui
}
