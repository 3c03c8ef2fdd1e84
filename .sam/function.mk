# How `sam build` makes the program of one function. The template's CodeUri is
# the folder of this architecture, because that is the one way the SAM CLI
# tells a make build which architecture the template asks for; WorkingDirectory
# is the root of the repository, where this runs.
#
# A function's folder follows from its name in the template:
# MemoryFunction is functions/memory, AgentWorkerFunction functions/agent-worker.

folder = $(shell echo '$*' | sed 's/\([a-z0-9]\)\([A-Z]\)/\1-\2/g' | tr 'A-Z' 'a-z')

# The same program in its streaming form.
build-RouterStreamFunction: folder = router

# No VCS stamp: the same source makes the same archive, so a deploy replaces
# only the functions that changed.
build-%Function:
	CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH) go build -buildvcs=false -trimpath \
		-tags lambda.norpc -ldflags='-s -w' -o '$(ARTIFACTS_DIR)/bootstrap' './functions/$(folder)'
