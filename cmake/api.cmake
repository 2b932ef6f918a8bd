# Installed libraries, their CMake package and their pkg-config files.

# npu_shared_api(<name> HEADERS <npu/x.h>... PARTS <static library>... [REQUIRES <other api library>...]
#                [ANSWERS <symbol>...])
# makes lib<name>.so of the parts. It exports the functions that the headers (in runtime/include) declare
# and nothing else but ANSWERS, symbols that a library below asks its user for, and fails to link when one of them is missing. Installed, in component "api": library,
# headers, target npu::<name> of find_package(npu), and <name>.pc.
function(npu_shared_api name)
    cmake_parse_arguments(ARG "" "" "HEADERS;PARTS;REQUIRES;ANSWERS" ${ARGN})
    set(include ${PROJECT_SOURCE_DIR}/runtime/include)
    set(symbols "")
    foreach(header IN LISTS ARG_HEADERS)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${include}/${header})
        # Declarations are what starts a line with a type and has name( on it; comments and macros do not.
        file(STRINGS ${include}/${header} lines REGEX "^[a-zA-Z].*[ *]npu_[a-z0-9_]+\\(")
        foreach(line IN LISTS lines)
            string(REGEX MATCH "npu_[a-z0-9_]+\\(" symbol "${line}")
            string(REPLACE "(" "" symbol "${symbol}")
            list(APPEND symbols ${symbol})
        endforeach()
    endforeach()
    list(REMOVE_DUPLICATES symbols)
    set(exported ${symbols} ${ARG_ANSWERS})
    string(REPLACE ";" "; " exported "${exported}")
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}.map)
    file(CONFIGURE OUTPUT ${script} CONTENT "{ global: ${exported}; local: *; };\n" @ONLY)

    # A shared library needs a source of its own; everything comes from the parts.
    set(anchor ${CMAKE_CURRENT_BINARY_DIR}/${name}_api.c)
    file(CONFIGURE OUTPUT ${anchor} CONTENT "typedef int npu_api_anchor;\n" @ONLY)
    add_library(${name} SHARED ${anchor})
    list(TRANSFORM symbols PREPEND "LINKER:--require-defined=" OUTPUT_VARIABLE required)
    target_link_options(${name} PRIVATE ${required} LINKER:--version-script=${script} LINKER:-Bsymbolic)
    if(NOT NPU_SANITIZE)
        target_link_options(${name} PRIVATE LINKER:-z,defs)
    endif()
    set_target_properties(${name} PROPERTIES LINK_DEPENDS ${script} VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
    target_link_libraries(${name} PRIVATE ${ARG_PARTS} INTERFACE ${ARG_REQUIRES})
    target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${include}>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set(exported_name ${name})
    string(REGEX REPLACE "^npu_" "" exported_name ${name}) # npu_simulator is npu::simulator
    set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported_name})
    add_library(npu::${exported_name} ALIAS ${name})

    install(TARGETS ${name} EXPORT npu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT api
        NAMELINK_COMPONENT api)
    foreach(header IN LISTS ARG_HEADERS)
        get_filename_component(folder ${header} DIRECTORY)
        install(FILES ${include}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT api)
    endforeach()
    string(REPLACE "_" "-" PC_NAME ${name})
    list(TRANSFORM ARG_REQUIRES REPLACE "_" "-")
    string(REPLACE ";" " " PC_REQUIRES "${ARG_REQUIRES}")
    set(PC_LIBRARY ${name})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/npu.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${PC_NAME}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${PC_NAME}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT api)
    set_property(GLOBAL APPEND PROPERTY NPU_APIS ${name})
endfunction()

# npu_install_package() - the CMake package of all npu_shared_api libraries; called once, after them.
function(npu_install_package)
    get_property(apis GLOBAL PROPERTY NPU_APIS)
    if(NOT apis)
        return()
    endif()
    include(CMakePackageConfigHelpers)
    set(destination ${CMAKE_INSTALL_LIBDIR}/cmake/npu)
    configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/npuConfig.cmake.in
        ${PROJECT_BINARY_DIR}/npuConfig.cmake INSTALL_DESTINATION ${destination})
    write_basic_package_version_file(${PROJECT_BINARY_DIR}/npuConfigVersion.cmake
        COMPATIBILITY SameMinorVersion)
    install(EXPORT npu NAMESPACE npu:: FILE npuTargets.cmake DESTINATION ${destination} COMPONENT api)
    install(FILES ${PROJECT_BINARY_DIR}/npuConfig.cmake ${PROJECT_BINARY_DIR}/npuConfigVersion.cmake
        DESTINATION ${destination} COMPONENT api)
endfunction()
