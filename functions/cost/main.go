// Command cost is the Lambda function of the category cost.
package main

import (
	"pawgate/internal/category/cost"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(cost.Open) }
