# The three ways a folder becomes a target. All of them find sources by glob, so that adding a file needs
# no edit here, and all of them root includes at the repository.

# npu_library(<name> [DEPS <library>...]) - static library of the *.c and *.cpp files of this folder.
function(npu_library name)
    cmake_parse_arguments(ARG "" "" "DEPS;SOURCES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    add_library(${name} STATIC ${sources} ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS} ${ARG_UNPARSED_ARGUMENTS} PRIVATE npu_warnings)
    # Unit tests of this folder link the library without having to say so.
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    set_property(GLOBAL PROPERTY NPU_LIBRARY_OF_${folder} ${name})
endfunction()

# npu_program(<name> [DEPS <library>...]) - executable of the *.c files of this folder.
function(npu_program name)
    cmake_parse_arguments(ARG "" "" "DEPS;SOURCES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    add_executable(${name} ${sources} ${ARG_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_UNPARSED_ARGUMENTS} npu_warnings)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# What every test process runs with: a sanitizer report is a crash, and SystemC's coroutines keep real
# stacks (LeakSanitizer and use-after-return get lost otherwise).
set(NPU_TEST_ENVIRONMENT
    "ASAN_OPTIONS=abort_on_error=1:detect_stack_use_after_return=0:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "SYSTEMC_DISABLE_COPYRIGHT_MESSAGE=1"
    "LC_ALL=C")

# npu_test(<folder> [DEPS <library>...]) - one Criterion program of the test_*.c and helper files in
# tests/unit/<folder>, named test_<folder with _>, run by ctest under the same name.
function(npu_test folder)
    cmake_parse_arguments(ARG "" "TIMEOUT" "DEPS;SOURCES" ${ARGN})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 300)
    endif()
    string(REPLACE "/" "_" name "test_${folder}")
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/${folder}/*.c)
    add_executable(${name} ${sources} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/support/test_main.c)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${name} PRIVATE NPU_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
        NPU_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" NPU_BINARY_DIR="${PROJECT_BINARY_DIR}")
    target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_UNPARSED_ARGUMENTS} npu_warnings
        PkgConfig::CRITERION m)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/run_unit $<TARGET_FILE:${name}>
        WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${NPU_TEST_ENVIRONMENT}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
