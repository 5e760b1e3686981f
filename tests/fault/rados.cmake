# Faults on a real Ceph; tests/servers has the cluster.
if(WT_RADOS)
    foreach(program rados rados_cephfs)
        add_executable(test_fault_${program} ${program}.c rados_util.c)
        target_link_libraries(test_fault_${program} PRIVATE wt_options wt_tiers PkgConfig::CMOCKA ${RADOS_LIBRARY})
        set_target_properties(test_fault_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    endforeach()
    wt_ceph_test(fault_rados COMMAND $<TARGET_FILE:test_fault_rados> TIMEOUT 600)
    wt_ceph_test(standby COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/standby.sh ${CMAKE_BINARY_DIR}/bin TIMEOUT 300)
    wt_ceph_test(fault_cephfs COMMAND $<TARGET_FILE:test_fault_rados_cephfs> TIMEOUT 300 MOUNT)

    # On all three tiers, each with a Redis of its own. Thirty faults (WAFERTIER_FAULT_SEED replays them), and a daemon that is killed
    # (WAFERTIER_CRASH_ROUNDS=200 for a long run).
    foreach(program storm crash_servers)
        add_executable(test_fault_${program} ${program}.c storm_setup.c storm_faults.c storm_reader.c rados_util.c
            ../servers/proxy.c ../integration/daemon/kit.c)
        target_link_libraries(test_fault_${program} PRIVATE wt_options wt_loader wt_tiers wt_core PkgConfig::CMOCKA
            PkgConfig::JANSSON Threads::Threads ${RADOS_LIBRARY})
        set_target_properties(test_fault_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        target_compile_definitions(test_fault_${program} PRIVATE WAFERTIERD="$<TARGET_FILE:wafertierd>"
            WAFERTIER="$<TARGET_FILE:wafertier>")
        add_dependencies(test_fault_${program} wafertier wafertierd)
    endforeach()
    wt_ceph_test(fault_storm COMMAND $<TARGET_FILE:test_fault_storm> TIMEOUT 400 MOUNT)
    wt_ceph_test(crash_servers COMMAND $<TARGET_FILE:test_fault_crash_servers> TIMEOUT 300 MOUNT)
endif()
