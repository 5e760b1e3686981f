# Out-of-memory tests: executables whose calls of the functions in oom_functions.txt go through oom.c.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/oom_functions.txt oom_functions)
list(TRANSFORM oom_functions PREPEND "-Wl,--wrap=")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/oom_functions.txt)

# oom_test(NAME sources... LIBS libs...)
function(oom_test name)
    wt_test(oom_${name} ${ARGN} TIMEOUT 600)
    target_sources(test_oom_${name} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/oom.c)
    target_link_options(test_oom_${name} PRIVATE ${oom_functions})
    target_link_libraries(test_oom_${name} PRIVATE PkgConfig::CONFUSE PkgConfig::CURL PkgConfig::JANSSON PkgConfig::MHD
        PkgConfig::SPNG PkgConfig::UV PkgConfig::XXHASH PkgConfig::ZLIB PkgConfig::ZSTD)
endfunction()

oom_test(core oom_core.c LIBS wt_daemon wt_core)
oom_test(http oom_http.c LIBS wt_core)
oom_test(pack oom_pack.c ../unit/tools/kit.c LIBS wt_tools)
oom_test(loader oom_loader.c ../integration/loader_kit.c LIBS wt_loader)
oom_test(daemon oom_daemon.c LIBS fuzz_daemon)
if(IS_DIRECTORY /dev/shm) # hundreds of packs, each with its fsyncs
    set_tests_properties(oom_pack PROPERTIES ENVIRONMENT TMPDIR=/dev/shm)
endif()
