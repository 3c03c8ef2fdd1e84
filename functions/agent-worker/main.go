// Command agent-worker is the Lambda function that does the queue's work: SQS
// tells it of items, it runs the model loop.
package main

import "pawgate/internal/worker"

func main() { worker.Lambda() }
