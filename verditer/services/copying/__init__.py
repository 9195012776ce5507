"""What copies into blobs and into files share: sources, and copies that are pending."""
