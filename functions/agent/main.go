// Command agent is the Lambda function of the category agent.
package main

import (
	"pawgate/internal/category/agent"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(agent.Open) }
