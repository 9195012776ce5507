"""Do Microsoft's own clients work?"""
