# Makes the build of llama.cpp for the tests a third as long: what computes is
# compiled many files at a time, and what only talks without optimisation. It is
# included by CMake itself (CMAKE_PROJECT_INCLUDE), so no source is changed.
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL build_quickly)

function(build_quickly)
	set_target_properties(llama ggml-base ggml-cpu PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
	foreach(target llama-common mtmd server-context llama-server-impl cpp-httplib llama-ui llama-server)
		if(TARGET ${target})
			target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
		endif()
	endforeach()
endfunction()
