# cmake -DPROGRAM=... -DEXPECTED=file -P compare_output.cmake: the program succeeds and prints exactly the file.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE output RESULT_VARIABLE result)
file(READ ${EXPECTED} expected)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ended with ${result}:\n${output}")
endif()
if(NOT output STREQUAL expected)
    message(FATAL_ERROR "${PROGRAM} printed\n${output}\nexpected (${EXPECTED})\n${expected}")
endif()
