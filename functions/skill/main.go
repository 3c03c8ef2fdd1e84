// Command skill is the Lambda function of the category skill.
package main

import (
	"pawgate/internal/category/skill"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(skill.Open) }
