# npu_fuzz(<name> <source> [<library>...]) - a target for a reader of foreign bytes. The source defines
# LLVMFuzzerTestOneInput (tests/fuzz/fuzz.h). With NPU_FUZZ (clang) it becomes a libFuzzer program;
# otherwise a program that replays tests/fuzz/corpus/<name>/ and seeded mutations of it. ctest runs either
# for about five seconds as fuzz_<name>.
function(npu_fuzz name source)
    set(target fuzz_${name})
    set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    add_executable(${target} ${source})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE ${ARGN} npu_warnings m)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    if(NPU_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
        set(scratch ${PROJECT_BINARY_DIR}/tests/found_${name})
        file(MAKE_DIRECTORY ${scratch})
        # New inputs go to the first folder, the committed corpus is only read.
        add_test(NAME ${target} COMMAND ${target} -max_total_time=5 -timeout=10 -rss_limit_mb=4096
            ${scratch} ${corpus} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    else()
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.c)
        add_test(NAME ${target} COMMAND ${target} --seconds 5 ${corpus}
            WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    endif()
    set_tests_properties(${target} PROPERTIES ENVIRONMENT "${NPU_TEST_ENVIRONMENT}" TIMEOUT 120)
endfunction()
