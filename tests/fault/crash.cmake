# SIGKILL at random points. WAFERTIER_CRASH_ROUNDS=500 for a long run.
foreach(name daemon loader)
    wt_test(crash_${name} crash_${name}.c ../integration/daemon/kit.c
        LIBS wt_loader wt_tiers wt_core PkgConfig::JANSSON TIMEOUT 600)
    target_compile_definitions(test_crash_${name} PRIVATE WAFERTIERD="$<TARGET_FILE:wafertierd>"
        WAFERTIER="$<TARGET_FILE:wafertier>")
    add_dependencies(test_crash_${name} wafertier wafertierd)
endforeach()

add_test(NAME crash_pack COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/crash_pack.sh $<TARGET_FILE:wafertier>)
set_tests_properties(crash_pack PROPERTIES TIMEOUT 600 LABELS fault)

add_test(NAME crash_land COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/crash_land.sh ${CMAKE_BINARY_DIR}/bin)
set_tests_properties(crash_land PROPERTIES TIMEOUT 600 LABELS fault)
