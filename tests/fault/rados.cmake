# Faults on a real Ceph; tests/servers has the cluster.
if(WT_RADOS)
    add_executable(test_fault_rados rados.c rados_util.c)
    target_link_libraries(test_fault_rados PRIVATE wt_options wt_tiers PkgConfig::CMOCKA ${RADOS_LIBRARY})
    set_target_properties(test_fault_rados PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    wt_ceph_test(fault_rados COMMAND $<TARGET_FILE:test_fault_rados> TIMEOUT 600)
endif()
