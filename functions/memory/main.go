// Command memory is the Lambda function of the category memory.
package main

import (
	"pawgate/internal/category/memory"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(memory.Open) }
