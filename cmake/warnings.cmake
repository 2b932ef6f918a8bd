# npu_warnings: what every C and C++ target of ours is compiled with. Linked by npu_library() and its
# companions, never by generated code (protobuf-c output).
add_library(npu_warnings INTERFACE)
target_compile_options(npu_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
        -Wmissing-prototypes -Wvla -Wundef -Wswitch-enum -Wformat=2 -Wcast-align -Wpointer-arith
        -Wwrite-strings -Wdouble-promotion -Wimplicit-fallthrough>
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>
    $<$<BOOL:${NPU_WERROR}>:-Werror>)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    # -Wconversion brings -Wsign-conversion with clang but not with gcc; the project uses gcc's meaning.
    target_compile_options(npu_warnings INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wno-sign-conversion>)
endif()

# Code generation that decides values (no contraction into FMA, errno-free libm) and stack unwinding
# through C frames, which the simulation kernel needs when it ends a process.
add_compile_options(-ffp-contract=off -fno-math-errno -funwind-tables)

if(NPU_SANITIZE)
    add_compile_options(-fsanitize=${NPU_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${NPU_SANITIZE})
endif()
if(NPU_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(NPU_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
endif()
