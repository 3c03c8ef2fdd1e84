// Command router is the Lambda function behind the HTTP API: the public MCP
// server.
package main

import "pawgate/internal/router"

func main() { router.Lambda() }
