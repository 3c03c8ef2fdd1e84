// Command tick is the Lambda function that makes what is due happen: once a
// minute slots of schedules and reminders become work.
package main

import "pawgate/internal/tick"

func main() { tick.Lambda() }
